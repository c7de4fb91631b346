package access

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tether/platform/ipc"
	"tether/platform/secret"
)

// Place is where a document is kept: a file, or the state that the nodes of a cluster
// share. It is safe for concurrent use.
type Place interface {
	// String names it, for messages.
	String() string
	// Read returns the document; the error is fs.ErrNotExist if there is none.
	Read() ([]byte, error)
	// Version returns the document's present version. It is cheap and never fails.
	Version() Version
	// Change replaces the document by the result of do, and returns when that is stored.
	// old is the present document, nil if there is none. Nobody else can change the
	// document between the call of do whose result is stored and the storing: where there
	// is no lock, do is called again after another change. If do fails, Change stores
	// nothing and returns its error.
	Change(do func(old []byte) ([]byte, error)) error
}

// Version identifies one state of a document: each change makes another. The zero value
// is the version of a missing document.
type Version struct {
	size     int64
	at       time.Time
	info     fs.FileInfo
	revision uint64
}

// Revision returns the Version of a document whose changes are counted, from 1.
func Revision(n uint64) Version { return Version{revision: n} }

// there reports whether there is a document.
func (v Version) there() bool { return v.info != nil || v.revision > 0 }

func (v Version) same(w Version) bool {
	if v.info == nil || w.info == nil {
		return v.info == nil && w.info == nil && v.revision == w.revision
	}
	return v.size == w.size && v.at.Equal(w.at) && os.SameFile(v.info, w.info)
}

// File returns the place of a document in a file that only this user can access. Several
// processes may change it.
func File(path string) Place { return file(path) }

type file string

// String implements Place.
func (f file) String() string { return string(f) }

// Read implements Place.
func (f file) Read() ([]byte, error) { return secret.ReadFile(string(f)) }

// Version implements Place.
func (f file) Version() Version {
	info, err := os.Stat(string(f))
	if err != nil {
		return Version{}
	}
	return Version{size: info.Size(), at: info.ModTime(), info: info}
}

// Change implements Place.
func (f file) Change(do func([]byte) ([]byte, error)) error {
	if err := secret.Dir(filepath.Dir(string(f))); err != nil {
		return err
	}
	held, err := lock(string(f) + ".lock")
	if err != nil {
		return err
	}
	defer held.Close()
	return ownFile{f}.Change(do)
}

// OwnFile returns the place of a document in a file that only one process changes, in a
// directory that others may read.
func OwnFile(path string) Place { return ownFile{file(path)} }

type ownFile struct{ file }

// Change implements Place.
func (f ownFile) Change(do func([]byte) ([]byte, error)) error {
	old, err := f.Read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := do(old)
	if err != nil {
		return err
	}
	return secret.WriteFile(string(f.file), data)
}

// lock takes the lock at path. It waits for another process for at most lockTries times
// lockPause.
func lock(path string) (*ipc.Held, error) {
	for try := 1; ; try++ {
		held, err := ipc.Lock(path)
		var taken *ipc.LockedError
		if err == nil || !errors.As(err, &taken) || try == lockTries {
			return held, err
		}
		time.Sleep(lockPause)
	}
}

// decode decodes a document of the given version.
func decode(p Place, data []byte, version int, into any) error {
	return secret.DecodeJSON(data, p.String(), version, into)
}

// onDisk reports whether a document is a file.
func onDisk(at Place) bool {
	switch at.(type) {
	case file, ownFile:
		return true
	}
	return false
}

// putAside renames a file that cannot be used because of err. It returns err with the new
// name and the effect of the loss, or with the reason why the file cannot be renamed. If
// at is not a file, it returns err.
func putAside(at Place, err error, effect string) (moved bool, _ error) {
	if !onDisk(at) {
		return false, err
	}
	aside := at.String() + ".damaged"
	if failed := os.Rename(at.String(), aside); failed != nil {
		return false, fmt.Errorf("%w; it cannot be put aside: %w", err, failed)
	}
	return true, fmt.Errorf("%w; it is put aside as %s%s", err, aside, effect)
}
