package shell

import (
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/windows/registry"
)

// login returns the best shell there is, unless SHELL names one: accounts have none on Windows.
func login() string {
	candidates := []func() string{func() string { return os.Getenv("SHELL") }}
	for _, kind := range windowsKinds {
		candidates = append(candidates, func() string { return first(kind) })
	}
	return choose(usable, `C:\Windows\System32\cmd.exe`, candidates...)
}

// listed reports nothing: Windows has no list of shells.
func listed(string) bool { return false }

// find looks a shell up by its bare name.
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

// gitFolder is where the installer of Git for Windows has put it, for all users or for this one.
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

// usable also takes the Store's programs, which are links of a kind that only CreateProcess follows.
func usable(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && !info.IsDir() && (info.Mode().IsRegular() || info.Mode()&fs.ModeIrregular != 0)
}
