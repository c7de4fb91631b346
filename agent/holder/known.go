package holder

import (
	"slices"
	"time"

	"tether/platform/pty"
)

// ID is the id the holder was spawned with.
func (c *Client) ID() string { return c.id }

// Pid is the process id of the child.
func (c *Client) Pid() int { return c.state.pid }

// Started is when the child was started, by the wall clock of then.
func (c *Client) Started() time.Time { return c.state.started }

// Base is the offset of the oldest byte the holder had when the Client
// connected.
func (c *Client) Base() int64 { return c.state.base }

// End is the offset after the newest byte of then.
func (c *Client) End() int64 { return c.state.end }

// Taken is up to where any daemon had read the stream then. What lies between
// it and Base, if it is less, was lost.
func (c *Client) Taken() int64 { return c.state.taken }

// Size is the size of the terminal when the Client connected.
func (c *Client) Size() pty.Size { return c.state.size }

// Checkpoints returns the notes the holder had when the Client connected,
// ascending by offset. At most one is before Base: the newest of all, if none is
// in the log. The caller must not change them.
func (c *Client) Checkpoints() []Checkpoint { return c.notes }

// Meta returns what Spawn or this Client's SetMeta set last.
func (c *Client) Meta() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.meta)
}
