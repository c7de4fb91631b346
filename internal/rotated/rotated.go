// Package rotated follows a log whose file is renamed when it is full: PATH to PATH.1,
// which was renamed to PATH.2 before, and so on. It neither writes nor renames anything.
//
//	log := rotated.New(path, nil)
//	defer log.Close()
//	err := log.Next(func(added io.Reader, fresh bool) error {
//		_, err := io.Copy(os.Stdout, added)
//		return err
//	})
package rotated

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"

	"tether/platform/secret"
)

const (
	most    = 100 // greatest number of an older file
	patient = 3   // so many calls of Next wait for a missing number between others, because files may be being renamed
)

// Follower reads what is added to a log. It is for one goroutine.
type Follower struct {
	path  string
	file  *os.File    // nil if there was none yet
	which fs.FileInfo // what file is, as told when it was opened
	holes int         // calls of Next that have waited for a missing number
}

// New returns a Follower that begins where file is, which belongs to it from now on. If
// file is nil, it begins with the file that it finds at path later.
func New(path string, file *os.File) *Follower {
	f := &Follower{path: path}
	f.follow(file)
	return f
}

// follow begins with a file, or with none. What it is is asked now: Wine tells it wrongly
// once the file has another name.
func (f *Follower) follow(file *os.File) {
	f.file, f.which = file, nil
	if file != nil {
		f.which, _ = file.Stat() // without it, the file counts as gone
	}
}

// Next passes on, in order, what was added since the last call; it does not wait. read
// has to read added to its end; fresh says that a new file begins. Nothing is missed at a
// renaming, unless the file that was followed and its successor have both been removed
// since.
func (f *Follower) Next(read func(added io.Reader, fresh bool) error) error {
	for fresh := false; ; fresh = true {
		if f.file != nil {
			if err := read(f.file, fresh); err != nil {
				return err
			}
		}
		next, err := f.successor()
		if next == nil || err != nil {
			return err
		}
		if f.file != nil {
			err := read(f.file, false) // what was added between its end and its renaming; nothing is after that
			_ = f.file.Close()         // was only read
			if f.follow(nil); err != nil {
				return errors.Join(err, next.Close())
			}
		}
		f.follow(next)
	}
}

// successor opens the file after the followed one: the first, or nil if the log still
// goes on in the followed one. The caller closes it.
func (f *Follower) successor() (next *os.File, err error) {
	next, err = open(f.path)
	if err != nil || f.file == nil {
		return next, err
	}
	if next != nil && f.is(next) {
		return nil, next.Close()
	}
	// It was renamed. Files only move to greater numbers, and the greatest first.
	for n := 1; n <= most; n++ {
		older, err := open(f.nth(n))
		switch {
		case err != nil:
			return nil, errors.Join(err, closed(next))
		case older != nil && f.is(older):
			f.holes = 0
			return next, older.Close()
		case older != nil:
			_ = closed(next) // was only read
			next = older
		case f.holes < patient && exists(f.nth(n+1)):
			f.holes++
			return nil, closed(next)
		default: // the followed file is gone; the log goes on in the oldest one that is left
			f.holes = 0
			return next, nil
		}
	}
	return next, nil
}

func (f *Follower) nth(n int) string { return f.path + "." + strconv.Itoa(n) }

// open opens a file for reading, and returns nil if there is none.
func open(path string) (*os.File, error) {
	f, err := secret.OpenRead(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// is says whether file is the followed one.
func (f *Follower) is(file *os.File) bool {
	which, err := file.Stat()
	return err == nil && f.which != nil && os.SameFile(which, f.which)
}

func closed(f *os.File) error {
	if f == nil {
		return nil
	}
	return f.Close()
}

// Close closes the file.
func (f *Follower) Close() error { return closed(f.file) }
