package problems

import (
	"path"
	"strings"
)

// resolve is a file's name, seen from a directory. Both may be of another system than this one.
func resolve(dir, file string) string {
	if rest, ok := strings.CutPrefix(file, "file://"); ok {
		file = rest
		if len(file) > 2 && file[0] == '/' && isDrive(file[1:]) {
			file = file[1:]
		}
	}
	switch {
	case file == "" || strings.HasPrefix(file, "/") || strings.HasPrefix(file, `\\`) || isDrive(file) || dir == "":
		return file
	case isDrive(dir) || strings.HasPrefix(dir, `\\`):
		joined := path.Join(strings.ReplaceAll(dir, `\`, "/"), strings.ReplaceAll(file, `\`, "/"))
		if strings.HasPrefix(dir, `\\`) {
			joined = "/" + joined // Join has made one of two
		}
		return strings.ReplaceAll(joined, "/", `\`)
	}
	return path.Join(dir, file)
}

// isDrive reports whether a path begins with a drive of Windows.
func isDrive(p string) bool {
	return len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/') && (p[0]|0x20 >= 'a' && p[0]|0x20 <= 'z')
}
