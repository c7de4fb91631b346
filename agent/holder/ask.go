package holder

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"tether/platform/ipc"
	"tether/platform/proc"
	"tether/platform/pty"
)

// begin registers a request and sends the frame that put makes. The channel for the
// answer is closed when the connection ends.
func (c *Client) begin(k kind, put func(frame []byte) []byte) (id uint32, answer chan reply, err error) {
	c.mu.Lock()
	if c.err != nil || c.requests == nil {
		err := c.err
		c.mu.Unlock()
		return 0, nil, err
	}
	c.lastID++
	id, answer = c.lastID, make(chan reply, 1)
	c.requests[id] = answer
	c.mu.Unlock()
	frame := beginRequest(k, id)
	if put != nil {
		frame = put(frame)
	}
	return id, answer, c.send(endFrame(frame))
}

// ask sends a request and waits for the answer, as long as it takes.
func (c *Client) ask(k kind, put func(frame []byte) []byte) error {
	_, answer, err := c.begin(k, put)
	if err != nil {
		return err
	}
	return c.outcome(<-answer)
}

// Bounds of the wait for a holder that may be stopped: callers must not hang with it.
const (
	answerTime = 10 * time.Second       // for operations that a holder does at once
	lookTime   = 250 * time.Millisecond // for a look, since others wait for its result; see Client.Look
	cancelTime = 3 * time.Second        // for the end of a kill whose grace was cut short
	killTime   = 5 * time.Second        // until a kill asks whether the holder is stopped
)

// errSilent is returned when a holder that runs does not answer.
var errSilent = errors.New("the holder does not answer")

// StoppedError is returned when a holder does not answer because it is stopped. It does
// what it was asked to do when it runs again.
type StoppedError struct{ Pid int }

func (e *StoppedError) Error() string {
	return fmt.Sprintf("the process %d, which holds this terminal, is stopped; it goes on with this request after: kill -CONT %d", e.Pid, e.Pid)
}

// Unwrap makes the error one of time.
func (*StoppedError) Unwrap() error { return context.DeadlineExceeded }

// silent is the error of a holder that has not answered in time.
func (c *Client) silent() error {
	if err := c.stopped(); err != nil {
		return err
	}
	return errSilent
}

// stopped returns a *StoppedError if the holder is stopped.
func (c *Client) stopped() error {
	peer, err := ipc.PeerOf(c.conn)
	if err != nil {
		return nil
	}
	defer peer.Close()
	if p, err := proc.Lookup(peer.Pid); err == nil && p.Stopped {
		return &StoppedError{p.Pid}
	}
	return nil
}

// askSoon is ask for operations that a holder does at once.
func (c *Client) askSoon(k kind, put func(frame []byte) []byte) error {
	id, answer, err := c.begin(k, put)
	if err != nil {
		return err
	}
	return c.await(id, answer, answerTime)
}

// await waits for the answer, at most for within.
func (c *Client) await(id uint32, answer chan reply, within time.Duration) error {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case r := <-answer:
		return c.outcome(r)
	case <-timer.C:
	}
	c.mu.Lock()
	delete(c.requests, id)
	c.mu.Unlock()
	return c.silent()
}

// outcome returns the error in an answer. The zero reply, which has no request, means
// that the connection has ended.
func (c *Client) outcome(r reply) error {
	switch {
	case r.request == 0:
		return c.Err()
	case r.status == statusOK:
		return nil
	case r.status == statusClosed:
		return &remoteError{r.text, os.ErrClosed}
	case r.status == statusRunning:
		return ErrRunning
	case r.status == statusNoFeed:
		return pty.ErrNoFeed
	default:
		return &remoteError{text: r.text}
	}
}
