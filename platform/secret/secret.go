// Package secret keeps files that only this user may read: credentials and private logs.
//
//	err := secret.Dir(d.State)
//	err = secret.WriteFile(filepath.Join(d.State, "hosts.json"), data)
//	data, err := secret.ReadFile(filepath.Join(d.State, "hosts.json"))
//
// A file that belongs to another user, or is open to others, is refused. The error says
// how to make the file private. The package does not do so itself: others may have read
// or replaced the file already, and closing it silently would hide that.
package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxFile bounds the files that ReadFile returns, in bytes.
const maxFile = 1 << 20

// ErrTooLarge is returned by ReadFile for a file of more than 1 MiB.
var ErrTooLarge = errors.New("larger than 1 MiB")

// Dir makes the directory with its parents, closed to others. If the path exists already,
// Dir checks that it is a directory, belongs to this user and is closed to others.
func Dir(path string) error {
	if err := makeDir(path); err != nil {
		return err
	}
	info, err := os.Lstat(path) // Lstat, because the owner of a link could change its target later
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory", path)
	}
	return check(path, info, "700")
}

// ReadFile returns the contents of the file, at most 1 MiB. A link is an error.
func ReadFile(path string) ([]byte, error) {
	f, err := open(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, path)
}

func readAll(f *os.File, path string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = &fs.PathError{Op: "read", Path: path, Err: ErrTooLarge}
	}
	return data, err
}

// ReadOwned returns the contents of a file, at most 1 MiB, that others may read but not
// change: it must belong to this user or root. ReadOwned follows links, so that a
// configuration may be stored elsewhere; the rule applies to the file to which they lead.
func ReadOwned(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path)
	}
	if err == nil {
		err = checkOwned(path, info)
	}
	if err != nil {
		return nil, err
	}
	return readAll(f, path)
}

// OpenRead opens a file for reading, without checking who else can read it. While it is
// open, other processes may rename, replace and remove it, which Windows otherwise
// forbids.
func OpenRead(path string) (*os.File, error) { return openRead(path) }

// OpenAppend opens the file for appending and makes it if it is missing. A link is an
// error.
func OpenAppend(path string) (*os.File, error) {
	return open(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
}

// OpenWrite opens the file for reading and writing in place and makes it if it is
// missing. A link is an error.
func OpenWrite(path string) (*os.File, error) {
	return open(path, os.O_RDWR|os.O_CREATE)
}

// open opens a regular file that belongs to this user and is closed to others; any other
// file is an error.
func open(path string, flags int) (*os.File, error) {
	f, err := openFile(path, flags)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a file", path)
	}
	if err == nil {
		err = check(path, info, "600")
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// WriteFile replaces the file as a whole: after a crash it holds either the old data or
// the new. Its directory must exist.
func WriteFile(path string, data []byte) error {
	f, err := createTemp(filepath.Dir(path), "."+filepath.Base(path)+".")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = replace(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

// Replace renames a file to one that may exist.
func Replace(from, to string) error { return replace(from, to) }

// SyncDir makes what was made, renamed and removed in a directory last through a loss of
// power. Windows cannot, and need not: NTFS journals it.
func SyncDir(path string) error { return syncDir(path) }
