package testkit

import (
	"context"
	"io"
	"path/filepath"
	"sync"
	"time"

	"tether/platform/pty"
)

// Child is a pty without a process: the test writes its output and ends it. It has the
// methods of a term.PTY and blocks only on channels, so it lives in synctest bubbles. Its
// methods may be called from any goroutine; the first of End, Die and Kill sets the exit.
type Child struct {
	out    chan []byte
	eof    chan struct{} // closed by End: nothing more can be printed
	closed chan struct{} // closed by Close
	reaped chan struct{} // closed by Die
	close  sync.Once
	end    sync.Once
	die    sync.Once
	exit   pty.Exit // written before reaped is closed

	mu     sync.Mutex
	rest   []byte
	typed  []byte
	size   pty.Size
	killed bool
}

// NewChild returns a child that runs.
func NewChild() *Child {
	return &Child{out: make(chan []byte), eof: make(chan struct{}), closed: make(chan struct{}), reaped: make(chan struct{})}
}

// Print hands p over as one read. It blocks until p is taken, the output has ended or the
// pty is closed.
func (c *Child) Print(p string) {
	select {
	case c.out <- []byte(p):
	case <-c.eof:
	case <-c.closed:
	}
}

// End ends the process and its output.
func (c *Child) End(code int) {
	c.Die(code)
	c.end.Do(func() { close(c.eof) })
}

// Die ends the process and leaves its output open, as a descendant does that still
// prints.
func (c *Child) Die(code int) {
	c.die.Do(func() {
		c.exit = pty.Exit{Code: code}
		close(c.reaped)
	})
}

// Closed returns a channel that Close closes.
func (c *Child) Closed() <-chan struct{} { return c.closed }

// Typed returns the input so far.
func (c *Child) Typed() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.typed)
}

// Killed reports whether Kill was called.
func (c *Child) Killed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.killed
}

// WaitReadable implements term.PTY.
func (c *Child) WaitReadable() error {
	c.mu.Lock()
	has := len(c.rest) > 0
	c.mu.Unlock()
	if has {
		return nil
	}
	select {
	case p := <-c.out:
		c.mu.Lock()
		c.rest = p
		c.mu.Unlock()
		return nil
	case <-c.eof:
	case <-c.closed:
	}
	return io.EOF
}

// Read implements term.PTY.
func (c *Child) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := copy(p, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Write implements term.PTY.
func (c *Child) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.typed = append(c.typed, p...)
	return len(p), nil
}

// Resize implements term.PTY.
func (c *Child) Resize(s pty.Size) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size = s
	return nil
}

// Wait implements term.PTY.
func (c *Child) Wait() pty.Exit { <-c.reaped; return c.exit }

// Kill implements term.PTY: the child ends with 137.
func (c *Child) Kill(context.Context, time.Duration) error {
	c.mu.Lock()
	c.killed = true
	c.mu.Unlock()
	c.End(137)
	return nil
}

// Pid implements term.PTY.
func (c *Child) Pid() int { return 1 }

// Close implements term.PTY.
func (c *Child) Close() error {
	c.close.Do(func() { close(c.closed) })
	return nil
}

// Sleep is a command that runs until it is killed. Its output does not matter.
func Sleep() []string {
	if filepath.Separator == '\\' {
		return []string{"ping", "-n", "1000000", "127.0.0.1"}
	}
	return []string{"sleep", "1000"}
}
