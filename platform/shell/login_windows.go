package shell

import (
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/windows/registry"
)

// login returns the shell that SHELL names, or the first available one of windowsKinds:
// on Windows, accounts have no shell.
func login() string {
	candidates := []func() string{func() string { return os.Getenv("SHELL") }}
	for _, kind := range windowsKinds {
		candidates = append(candidates, func() string { return first(kind) })
	}
	return choose(usable, `C:\Windows\System32\cmd.exe`, candidates...)
}

// listed always returns false: Windows has no list of shells.
func listed(string) bool { return false }

// find returns the path of a shell with a bare name; a name with a path, or an unknown
// name, is returned unchanged.
func find(name string) string {
	if strings.ContainsAny(name, `\/:`) {
		return name
	}
	if path := first(name); path != "" {
		return path
	}
	return name
}

// first returns the path of the shell with this name, or "".
func first(name string) string {
	for _, path := range places(name, os.Getenv, gitFolder()) {
		if usable(path) {
			return path
		}
	}
	return ""
}

// gitFolder returns the directory in which Git for Windows is installed, for this user or
// for all users, or "".
func gitFolder() string {
	for _, root := range []registry.Key{registry.CURRENT_USER, registry.LOCAL_MACHINE} {
		key, err := registry.OpenKey(root, `SOFTWARE\GitForWindows`, registry.QUERY_VALUE)
		if err != nil {
			continue
		}
		dir, _, err := key.GetStringValue("InstallPath")
		_ = key.Close()
		if err == nil && dir != "" {
			return dir
		}
	}
	return ""
}

// usable also accepts programs of the Microsoft Store, which are links of a kind that
// only CreateProcess follows.
func usable(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && !info.IsDir() && (info.Mode().IsRegular() || info.Mode()&fs.ModeIrregular != 0)
}
