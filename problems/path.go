package problems

import (
	"path"
	"strings"
)

// resolve is a file's name, seen from a directory. Both may be of another system than
// this one.
func resolve(dir, file string) string {
	if rest, ok := strings.CutPrefix(file, "file://"); ok {
		file = rest
		if len(file) > 2 && file[0] == '/' && isDrive(file[1:]) {
			file = file[1:]
		}
	}
	switch {
	case file == "" || isAbsolute(file) || dir == "":
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

func isAbsolute(p string) bool {
	return strings.HasPrefix(p, "/") || strings.HasPrefix(p, `\\`) || isDrive(p)
}

// packageDir is the directory of the Go package with an import path, and whether it is
// known. It is known from a command line such as go test ./half, and where one element of
// the import path is the name of the directory in which the command looks for packages.
// tested says that the command has tested this package.
func packageDir(dir, command, pkg string, tested bool) (string, bool) {
	named, isTest := testedDirs(command)
	switch {
	case !isTest || len(named) > 1:
	case len(named) == 0 || named[0] == ".":
		if tested {
			return dir, dir != ""
		}
	case named[0][0] != '.':
	case strings.HasSuffix(named[0], "..."):
		dir = resolve(dir, path.Clean(strings.TrimSuffix(named[0], "...")))
	case strings.HasSuffix(pkg, "/"+path.Base(named[0])):
		return resolve(dir, path.Clean(named[0])), dir != ""
	}
	name := "/" + dir[strings.LastIndexAny(dir, `/\`)+1:] + "/"
	_, below, found := strings.Cut("/"+pkg+"/", name)
	if !found || name == "//" || strings.Contains("/"+below, name) || strings.Contains("/"+below, "/../") {
		return "", false
	}
	return resolve(dir, path.Clean("./"+below)), true
}

// testedDirs are the arguments of go test that name packages by directories, or perhaps
// do; false for other commands.
func testedDirs(command string) (named []string, isTest bool) {
	words := strings.Fields(command)
	if len(words) < 2 || words[0] != "go" || words[1] != "test" || strings.ContainsAny(command, ";&|") {
		return nil, false
	}
	for _, w := range words[2:] {
		if w == "." || w[0] != '-' && strings.Contains(w, "/") {
			named = append(named, w)
		}
	}
	return named, true
}

// isDrive reports whether a path begins with a drive of Windows.
func isDrive(p string) bool {
	return len(p) > 2 && p[1] == ':' && (p[2] == '\\' || p[2] == '/') && (p[0]|0x20 >= 'a' && p[0]|0x20 <= 'z')
}
