package ahp

import (
	"net/url"
	"strings"
)

// FileURI returns the file URI of an absolute path, of Unix or Windows: "" for an empty path, or for one whose URI is longer than MaxCwd,
// since escaping may make it three times as long. What is no absolute path, such as a URI, is returned as it is.
func FileURI(path string) string {
	switch {
	case isDrive(path):
		path = "/" + strings.ReplaceAll(path, `\`, "/")
	case strings.HasPrefix(path, `\\`): // of a server
		path = strings.ReplaceAll(path, `\`, "/")
	case !strings.HasPrefix(path, "/"):
		return path
	}
	uri := (&url.URL{Scheme: "file", Path: path}).String()
	if len(uri) > MaxCwd {
		return ""
	}
	return uri
}

// PathOf returns the path that a file URI of the machine itself names, a Windows path for one with a drive. Everything else, such as a
// plain path or another machine's URI, is returned as it is.
func PathOf(cwd string) string {
	u, err := url.Parse(cwd)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || u.Path == "" {
		return cwd
	}
	if drive := u.Path[1:]; isDrive(drive) {
		return strings.ReplaceAll(drive, "/", `\`)
	}
	return u.Path
}

// isDrive reports whether a path begins with a drive of Windows: C:\x, C:/x or C: alone.
func isDrive(path string) bool {
	return len(path) >= 2 && path[1] == ':' && (path[0]|0x20) >= 'a' && (path[0]|0x20) <= 'z' && (len(path) == 2 || path[2] == '\\' || path[2] == '/')
}
