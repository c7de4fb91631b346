package installer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

func foreign(path string) error {
	return &Problem{Text: path + " was not made by tether service install", Next: "move it away, or use it in place of this command"}
}

// write replaces a file in one step: afterwards it has the whole new text or, after an
// error, the old one.
func write(path, text string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return notWritten(path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tether-*")
	if err != nil {
		return notWritten(path, err)
	}
	defer func() {
		if err != nil {
			err = notWritten(path, errors.Join(err, os.Remove(f.Name())))
		}
	}()
	_, err = f.WriteString(text)
	err = errors.Join(err, f.Chmod(0o644), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func notWritten(path string, err error) error {
	next := "free space on the disk, or check the permissions; nothing was changed"
	if errors.Is(err, fs.ErrPermission) {
		next = "get write access to " + filepath.Dir(path) + "; nothing was changed"
	}
	return &Problem{Text: "write " + path, Next: next, Err: err}
}

// remove removes a file and each directory above it that is then empty, up to but not
// including stop. A missing file is no error.
func remove(path, stop string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the installed files: %w", err)
	}
	for dir := filepath.Dir(path); len(dir) > len(stop); dir = filepath.Dir(dir) {
		if os.Remove(dir) != nil { // dir is not empty
			break
		}
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
