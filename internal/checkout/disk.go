package checkout

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"tether/platform/volume"
)

// System is what the package needs of the operating system. Paths are absolute and, but
// for their last part, without links.
type System interface {
	// Volume names the file system that a path is on. It does not ask that file system.
	Volume(path string) string
	Lstat(path string) (fs.FileInfo, error)
	Readlink(path string) (string, error)
	// Names returns the names in a directory, maxNames of them at most.
	Names(path string) ([]string, error)
	// Open opens a regular file. It follows no link, and waits for no pipe's other end.
	Open(path string) (File, error)
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.Closer
	Stat() (fs.FileInfo, error)
}

// thisSystem is the System of this machine.
type thisSystem struct{ table *volume.Table }

func (s thisSystem) Volume(path string) string              { return s.table.Of(path) }
func (s thisSystem) Lstat(path string) (fs.FileInfo, error) { return os.Lstat(path) }
func (s thisSystem) Readlink(path string) (string, error)   { return os.Readlink(path) }
func (s thisSystem) Names(path string) ([]string, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxNames)
	if err == io.EOF {
		err = nil
	}
	return names, err
}
func (s thisSystem) Open(path string) (File, error) { return volume.Open(path) }

const (
	hangsAfter = time.Second // of one question to a file system
	restsFor   = time.Minute // how long one that hangs is left alone
	maxLinks   = 40          // in one path, as on Linux (path_resolution(7))
	maxNames   = 4096        // in one directory
	maxParts   = 256         // of one path, together with those of its links
)

// errHangs is the answer for a file system that does not answer.
var errHangs = errors.New("the file system does not answer")

// disk asks file systems, each by one reader at a time. A reader that hangs stops nobody
// but those who ask the same file system.
type disk struct {
	sys     System
	mu      sync.Mutex
	readers map[string]*reader   // by volume
	known   map[string]packedRef // by repository and ref
}

// reader is the reader of one file system.
type reader struct {
	turn  chan struct{} // 1 slot: held while the file system is asked, also after hangsAfter
	mu    sync.Mutex
	since time.Time // when the last question was asked
	until time.Time // when it may be tried again
}

func (r *reader) rests() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Now().Before(r.until)
}

func (r *reader) asks() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.since = time.Now()
}

// hangs reports whether the last question, which is not answered, is too old.
func (r *reader) hangs() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Since(r.since) >= hangsAfter
}

func (r *reader) rest() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.until = time.Now().Add(restsFor)
	return errHangs
}

func (d *disk) of(path string) *reader {
	name := d.sys.Volume(path)
	d.mu.Lock()
	defer d.mu.Unlock()
	r := d.readers[name]
	if r == nil {
		r = &reader{turn: make(chan struct{}, 1)}
		d.readers[name] = r
	}
	return r
}

// ask returns what question returns, which may only touch path. It returns errHangs
// instead if that takes too long, and then for a minute without asking; the goroutine of
// the question ends when the file system has answered.
func ask[T any](d *disk, path string, question func() (T, error)) (T, error) {
	type answer struct {
		is  T
		err error
	}
	var none T
	r := d.of(path)
	if r.rests() {
		return none, errHangs
	}
	late := time.NewTimer(hangsAfter)
	defer late.Stop()
	for asked := false; !asked; {
		select {
		case r.turn <- struct{}{}:
			r.asks()
			asked = true
		case <-late.C:
			if r.hangs() {
				return none, r.rest()
			}
		}
		late.Reset(hangsAfter)
	}
	answers := make(chan answer, 1)
	go func() {
		is, err := question()
		<-r.turn
		answers <- answer{is, err}
	}()
	select {
	case a := <-answers:
		return a.is, a.err
	case <-late.C:
		return none, r.rest()
	}
}

func (d *disk) lstat(path string) (fs.FileInfo, error) {
	return ask(d, path, func() (fs.FileInfo, error) { return d.sys.Lstat(path) })
}

// real returns path without links, which exists.
func (d *disk) real(path string) (string, error) {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return "", fs.ErrInvalid
	}
	at, rest := split(path)
	links := 0
	for taken := 0; len(rest) > 0; taken++ {
		part := rest[0]
		rest = rest[1:]
		if taken > maxParts {
			return "", fs.ErrInvalid
		}
		switch part {
		case "", ".":
			continue
		case "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		info, err := d.lstat(next)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", fs.ErrInvalid
		}
		target, err := ask(d, next, func() (string, error) { return d.sys.Readlink(next) })
		if err != nil {
			return "", err
		}
		top, parts := split(target)
		if filepath.IsAbs(target) {
			at = top
		}
		rest = append(parts, rest...)
	}
	return at, nil
}

// split returns the root of a path, and its parts.
func split(path string) (top string, parts []string) {
	volume := filepath.VolumeName(path)
	path = filepath.ToSlash(path[len(volume):])
	return volume + string(filepath.Separator), strings.Split(path, "/")
}

// errTooLarge is the answer for a file beyond its bound.
var errTooLarge = errors.New("the file is too large")

// read returns a regular file of at most most bytes, whose directory's path has no links.
func (d *disk) read(path string, most int64) ([]byte, error) {
	return within(d, path, func(f File, size int64) ([]byte, error) {
		if size > most {
			return nil, errTooLarge
		}
		return io.ReadAll(io.NewSectionReader(f, 0, most))
	})
}

// within opens a file for one question about it.
func within[T any](d *disk, path string, question func(f File, size int64) (T, error)) (T, error) {
	return ask(d, path, func() (T, error) {
		var none T
		f, err := d.sys.Open(path)
		if err != nil {
			return none, err
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			return none, err
		}
		if !info.Mode().IsRegular() {
			return none, fs.ErrInvalid
		}
		return question(f, info.Size())
	})
}
