package history

import (
	"fmt"
	"io/fs"
	"sync"
	"time"
)

// gate is an FS that changes nothing any more once it is shut: the next daemon may be
// writing then. What was written can be synced all the same.
type gate struct {
	FS
	mu   sync.RWMutex // held for reading while something is changed
	down bool
}

// errShut is of changes after Shut.
var errShut = fmt.Errorf("the daemon has ended: %w", fs.ErrClosed)

// shut waits for the changes that have begun, for at most the time within: a disk may
// hold up a write, too.
func (g *gate) shut(within time.Duration) {
	done := make(chan struct{})
	go func() { // from here on no change begins
		defer close(done)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.down = true
	}()
	select {
	case <-done:
	case <-time.After(within):
	}
}

func (g *gate) change(do func() error) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.down {
		return errShut
	}
	return do()
}

// Append implements FS.
func (g *gate) Append(name string) (file File, err error) {
	err = g.change(func() (err error) {
		file, err = g.FS.Append(name)
		return err
	})
	if err != nil {
		return nil, err
	}
	return gateFile{file, g}, nil
}

// MakeDir implements FS.
func (g *gate) MakeDir(name string) error {
	return g.change(func() error { return g.FS.MakeDir(name) })
}

// Rename implements FS.
func (g *gate) Rename(from, to string) error {
	return g.change(func() error { return g.FS.Rename(from, to) })
}

// Remove implements FS.
func (g *gate) Remove(name string) error {
	return g.change(func() error { return g.FS.Remove(name) })
}

type gateFile struct {
	File
	g *gate
}

// Write implements File.
func (f gateFile) Write(p []byte) (n int, err error) {
	err = f.g.change(func() (err error) {
		n, err = f.File.Write(p)
		return err
	})
	return n, err
}
