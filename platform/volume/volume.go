// Package volume tells which file system a path is on without asking that file system,
// because one that hangs, such as a network's, would hang the caller, too.
//
//	var table volume.Table
//	name := table.Of("/home/me/src")
package volume

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// mountsKept is how long the list of mounts is used again.
const mountsKept = 5 * time.Second

// Table knows the mounted file systems. The zero value is ready; it is safe for
// concurrent use.
type Table struct {
	mu     sync.Mutex
	mounts []string // mount points
	read   time.Time
}

// Of returns a name for the file system that an absolute path without links is on: its
// mount point, or on Windows the drive or share.
func (t *Table) Of(path string) string {
	if name := filepath.VolumeName(path); name != "" {
		return strings.ToLower(name)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.read.IsZero() || time.Since(t.read) > mountsKept {
		t.mounts, t.read = mounts(), time.Now()
	}
	return deepest(t.mounts, path)
}

func deepest(mounts []string, path string) (best string) {
	for _, m := range mounts {
		if len(m) > len(best) && strings.HasPrefix(path, m) && (len(path) == len(m) || path[len(m)] == '/' || m == "/") {
			best = m
		}
	}
	return best
}

// Open opens a regular file for reading. It does not follow a link in the last part of
// name, and does not wait for the other end of a named pipe.
func Open(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|flags, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &os.PathError{Op: "open", Path: name, Err: os.ErrInvalid}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
