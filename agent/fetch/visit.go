package fetch

import (
	_ "embed"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"sync"
)

//go:embed refused.txt
var refusedText string

type rule struct{ query, path, why string }

var rules = sync.OnceValue(func() (all []rule) {
	for line := range strings.Lines(refusedText) {
		where, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		what, why, _ := strings.Cut(rest, " ")
		switch why = strings.TrimSpace(why); where {
		case "path":
			all = append(all, rule{path: what, why: why})
		case "query":
			all = append(all, rule{query: what, why: why})
		}
	}
	return all
})

// filesPath begins the paths by which Vite serves files by their absolute paths.
const filesPath = "/@fs/"

// MayVisit returns an Error for what is not for whoever only looks: what refused.txt
// lists, and files outside of dirs, see Request.Dirs. Servers decode paths in different
// ways, so each way of reading one counts.
func MayVisit(u *url.URL, dirs []string) error {
	for _, p := range readings(u.EscapedPath()) {
		for _, one := range rules() {
			if one.path != "" && begins(p, one.path) {
				return refused("path %.60q is not for whoever only looks (%s)", u.Path, one.why)
			}
		}
		for i := range len(p) - len(filesPath) + 1 { // it may follow a base path, such as /_nuxt
			if end := i + len(filesPath); strings.EqualFold(p[i:end], filesPath) && !inDirs(dirs, p[end-1:]) {
				return refused("path %.60q names a file outside of the terminal's checkout and directory", u.Path)
			}
		}
		if strings.Contains(p, "/../") || strings.HasSuffix(p, "/..") {
			return refused("path %.60q leads upwards; write where it leads to", u.Path)
		}
	}
	for _, key := range keys(u.RawQuery) {
		for _, one := range rules() {
			if one.query != "" && strings.EqualFold(key, one.query) {
				return refused("the query's %s is not for whoever only looks (%s)", one.query, one.why)
			}
		}
	}
	return nil
}

// keys returns the keys of a query, also of a part that url.ParseQuery leaves out.
func keys(query string) (all []string) {
	for part := range strings.FieldsFuncSeq(query, func(c rune) bool { return c == '&' || c == ';' }) {
		key, _, _ := strings.Cut(part, "=")
		if decoded, err := url.QueryUnescape(key); err == nil {
			key = decoded
		}
		all = append(all, key)
	}
	return all
}

// maxDecoded bounds how often a path is decoded: a server behind a proxy decodes twice.
const maxDecoded = 4

// readings returns a path as it is, decoded, and decoded again, each also without
// repeated slashes and with slashes for backslashes.
func readings(p string) (all []string) {
	for range maxDecoded {
		all = append(all, p, slashes(p))
		decoded, err := url.PathUnescape(p)
		if err != nil || decoded == p {
			break
		}
		p = decoded
	}
	return all
}

func slashes(p string) string {
	p = strings.ReplaceAll(p, `\`, "/")
	for strings.Contains(p, "//") || strings.Contains(p, "/./") {
		p = strings.ReplaceAll(strings.ReplaceAll(p, "//", "/"), "/./", "/")
	}
	return p
}

// begins ignores case, as file systems and some routers do. A prefix may also follow a
// base path of one part, such as /app.
func begins(p, prefix string) bool {
	p, prefix = strings.ToLower(p), strings.ToLower(prefix)
	if has(p, prefix) {
		return true
	}
	if strings.HasPrefix(prefix, "/__") || strings.HasPrefix(prefix, "/@") {
		for i := range len(p) {
			if i > 0 && p[i] == '/' && has(p[i:], prefix) {
				return true
			}
		}
	}
	return false
}

// has reports whether a path begins with the parts of prefix, or, if that ends with a
// star, with its bytes.
func has(p, prefix string) bool {
	prefix, any := strings.CutSuffix(prefix, "*")
	rest, ok := strings.CutPrefix(p, prefix)
	return ok && (any || rest == "" || rest[0] == '/' || strings.HasSuffix(prefix, "/"))
}

// inDirs reports whether an absolute path, as a URL has it, is in one of the directories.
func inDirs(dirs []string, file string) bool {
	if strings.Contains(file, "%") {
		return true // a reading of it that is decoded decides
	}
	file = path.Clean(file)
	for _, dir := range dirs {
		dir = filepath.ToSlash(dir)
		if !strings.HasPrefix(dir, "/") {
			dir = "/" + dir // C:/Users, which is /@fs/C:/Users
		}
		if dir = path.Clean(dir); dir != "/" && (file == dir || strings.HasPrefix(file, dir+"/")) {
			return true
		}
	}
	return false
}
