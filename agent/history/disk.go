package history

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"tether/platform/secret"
)

// FS is the directory of a history. Names are relative, with slashes; "." is the
// directory itself. What was written lasts through a loss of power only after File.Sync;
// a file that was made, renamed or removed only after SyncDir of its directory.
type FS interface {
	// Append opens a file for appending, and makes it if it is missing.
	Append(name string) (File, error)
	// Open opens a file for reading. It may be renamed and removed meanwhile.
	Open(name string) (Source, error)
	// MakeDir makes a directory, unless it exists.
	MakeDir(name string) error
	// Rename replaces to by from.
	Rename(from, to string) error
	// Remove removes a file, or an empty directory. One that is missing is no error.
	Remove(name string) error
	// List returns what a directory has, ordered by name.
	List(dir string) ([]Entry, error)
	SyncDir(dir string) error
}

// File is a file that is written.
type File interface {
	io.WriteCloser
	Sync() error
}

// Source is a file that is read.
type Source interface {
	io.ReaderAt
	io.Closer
	Size() (int64, error)
}

// Entry is a file or a directory. Size is of files.
type Entry struct {
	Name string
	Dir  bool
	Size int64
}

// Disk returns the FS of a directory, which is closed to others.
func Disk(dir string) FS { return disk(dir) }

type disk string

func (d disk) path(name string) string { return filepath.Join(string(d), filepath.FromSlash(name)) }

// Append implements FS.
func (d disk) Append(name string) (File, error) { return secret.OpenAppend(d.path(name)) }

// Open implements FS.
func (d disk) Open(name string) (Source, error) {
	f, err := secret.OpenRead(d.path(name))
	if err != nil {
		return nil, err
	}
	return source{f}, nil
}

type source struct{ *os.File }

// Size implements Source.
func (s source) Size() (int64, error) {
	info, err := s.Stat()
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, &fs.PathError{Op: "read", Path: s.Name(), Err: fs.ErrInvalid}
	}
	return info.Size(), nil
}

// MakeDir implements FS.
func (d disk) MakeDir(name string) error { return secret.Dir(d.path(name)) }

// Rename implements FS.
func (d disk) Rename(from, to string) error { return secret.Replace(d.path(from), d.path(to)) }

// Remove implements FS.
func (d disk) Remove(name string) error {
	err := os.Remove(d.path(name))
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

// List implements FS.
func (d disk) List(dir string) ([]Entry, error) {
	all, err := os.ReadDir(d.path(dir))
	var entries []Entry
	for _, e := range all {
		if e.IsDir() {
			entries = append(entries, Entry{Name: e.Name(), Dir: true})
		} else if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			entries = append(entries, Entry{Name: e.Name(), Size: info.Size()})
		}
	}
	return entries, err
}

// SyncDir implements FS.
func (d disk) SyncDir(dir string) error { return secret.SyncDir(d.path(dir)) }
