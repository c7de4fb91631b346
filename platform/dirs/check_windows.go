package dirs

import (
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// Check always returns nil: on Windows the system's own errors name the directory.
func (d Dirs) Check() error { return nil }

// Full returns the directory in which a file could not be written because the disk is
// full.
func Full(err error) (dir string, full bool) {
	at, ok := errors.AsType[*fs.PathError](err)
	if !ok || !errors.Is(err, windows.ERROR_DISK_FULL) && !errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) {
		return "", false
	}
	return filepath.Dir(at.Path), true
}
