package holder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tether/platform/ipc"
	"tether/platform/proc"
	"tether/platform/pty"
)

// Wait blocks until the child or the connection has ended and, if the Client streams,
// Read has returned all output; Close unblocks it at once. It returns how the child
// ended, or code -1 if that is not known: Err says why.
func (c *Client) Wait() pty.Exit {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.settledLocked() {
		c.changed.Wait()
	}
	if c.exit == nil {
		return pty.Exit{Code: -1}
	}
	return c.exit.exit
}

func (c *Client) settledLocked() bool {
	switch {
	case c.detached:
		return true
	case c.err != nil:
		return !c.in.streaming || c.in.pos >= c.in.end
	case c.exit != nil:
		return !c.in.streaming || c.in.pos >= c.exit.end
	default:
		return false
	}
}

// ExitedAt returns when the child ended, the zero time if it has not, and the offset at
// which its output ended.
func (c *Client) ExitedAt() (at time.Time, end int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exit == nil {
		return time.Time{}, 0
	}
	return c.exit.at, c.exit.end
}

// Gone reports whether the holder has ended; the end of the connection alone does not
// prove it. A killed holder may take a moment to disappear, so this waits up to a second
// for it, and then removes its files in the directory.
func (c *Client) Gone() bool {
	if err := c.Err(); err == nil || errors.Is(err, ErrReplaced) {
		return false
	}
	const look = 5 * time.Millisecond
	for end := time.Now().Add(time.Second); ; {
		if removeDead(c.path) {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(look)
	}
}

// Left returns how many processes the programs of an agent's terminal have left below its
// holder; it is 0 for other terminals.
func (c *Client) Left() int {
	peer, err := ipc.PeerOf(c.conn)
	if err != nil {
		return 0
	}
	defer peer.Close()
	all, err := proc.List()
	if err != nil {
		return 0
	}
	n := 0
	for _, p := range proc.Descendants(all, peer.Pid) {
		if p.Pid != c.Pid() && !p.Zombie {
			n++
		}
	}
	return n
}

// Forget tells the holder that the exit was recorded. The holder removes its socket and
// ends, or stays for processes that an agent's programs have left. Forget returns when
// that is done, or ctx ends; before the exit it returns ErrRunning. Afterwards the Client
// cannot be used any more.
func (c *Client) Forget(ctx context.Context) error {
	_, answer, err := c.begin(kindForget, nil)
	if err != nil {
		return fmt.Errorf("forget terminal: %w", err)
	}
	var r reply
	select {
	case r = <-answer:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := c.outcome(r); err != nil {
		return fmt.Errorf("forget terminal: %w", err)
	}
	ended := c.disconnected
	if c.process != nil && r.text != stays {
		ended = c.reaped
	}
	select {
	case <-ended:
		c.conn.Close()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
