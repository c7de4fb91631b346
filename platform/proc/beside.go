package proc

import (
	"os"
	"path/filepath"
)

// Beside reports whether there is a file with this name, relative to the directory of the
// file that a process runs, in the file system as that process sees it.
func Beside(a Ancestor, name string) bool {
	if a.Exe == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(rootOf(a.Pid), filepath.Dir(a.Exe), name))
	return err == nil
}
