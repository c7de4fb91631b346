package holder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tether/platform/ipc"
	"tether/platform/pty"
)

// socketPath is where the holder with this id listens.
func socketPath(dir, id string) string { return filepath.Join(dir, id+socketSuffix) }

const (
	socketSuffix = ".sock"
	lockSuffix   = ".lock" // platform/ipc names the lock of a socket so
)

// List returns the ids of the holders in dir, in alphabetical order. It removes the files
// of killed holders; it never removes a socket that is served. Without the directory
// there are none.
func List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list holders: %w", err)
	}
	var ids []string
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), lockSuffix)
		id, ok := strings.CutSuffix(name, socketSuffix)
		if !ok || !validID(id) {
			continue
		}
		alive := !removeDead(filepath.Join(dir, name))
		if alive && name == e.Name() {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// Dead returns the number of killed holders that have left files in dir. It removes
// nothing.
func Dead(dir string) (int, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*"+socketSuffix))
	n := 0
	for _, path := range paths {
		lock, held := ipc.Lock(path + lockSuffix)
		if held != nil {
			continue // alive, or not to be judged
		}
		if conn, err := ipc.Dial(context.Background(), path); err == nil {
			conn.Close()
		} else if errors.Is(err, ipc.ErrNotRunning) {
			n++
		}
		lock.Close()
	}
	return n, err
}

// removeDead removes the socket and the lock file of a holder that is gone and reports
// whether it was. A living holder has the lock.
func removeDead(path string) bool {
	lock, err := ipc.Lock(path + lockSuffix)
	if err != nil {
		return false // alive, or not to be judged
	}
	defer lock.Close()
	conn, err := ipc.Dial(context.Background(), path)
	if err == nil {
		conn.Close() // served without a lock: not ours, but alive
	}
	if !errors.Is(err, ipc.ErrNotRunning) {
		return false
	}
	_ = os.Remove(path) // there may be only a lock
	_ = removeLock(path)
	return true
}

// removeLock removes a lock file. That is safe because an id is used once, and because
// ipc.Listen does not rely on the lock alone: it never takes the place of a socket that
// answers.
func removeLock(path string) error {
	err := os.Remove(path + lockSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ID is the id the holder was spawned with.
func (c *Client) ID() string { return c.id }

// Pid is the process id of the child.
func (c *Client) Pid() int { return c.state.pid }

// Started returns when the child was started, by the wall clock of that time.
func (c *Client) Started() time.Time { return c.state.started }

// Base is the offset of the oldest byte the holder had when the Client connected.
func (c *Client) Base() int64 { return c.state.base }

// End returns the offset after the newest byte that the holder had when the Client
// connected.
func (c *Client) End() int64 { return c.state.end }

// Taken returns the offset up to which any daemon had read the stream when the Client
// connected. If it is less than Base, the bytes between them were lost.
func (c *Client) Taken() int64 { return c.state.taken }

// Size is the size of the terminal when the Client connected.
func (c *Client) Size() pty.Size { return c.state.size }

// Checkpoints returns the notes that the holder had when the Client connected, ascending
// by offset. At most one is before Base: the newest of all, if no note is in the log. The
// caller must not change them.
func (c *Client) Checkpoints() []Checkpoint { return c.notes }

// Meta returns the value that Spawn or this Client's SetMeta set last.
func (c *Client) Meta() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.meta)
}

// Screens returns the screens left by Screen, as Checkpoints returns notes; none of them
// is before Base.
func (c *Client) Screens() []Checkpoint { return c.screens }
