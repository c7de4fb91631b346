package local

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"tether/agent/term"
	"tether/internal/change"
)

// Further bounds of one client.
const (
	askedAhead = 16        // requests that may wait for run; while there are more, nothing is read from the client
	chunk      = 32 << 10  // most bytes of text in one pty:output
	keptFrame  = 512 << 10 // size in bytes up to which a buffer is kept for later messages

	// messageRate and messageBurst limit the number of messages that are read from one
	// client, per second and at once. Nobody types that fast.
	messageRate  = 4000
	messageBurst = 10000

	// inputTimeout is how long input waits for a child that does not read. Meanwhile
	// nothing else is read from this client.
	inputTimeout = 2 * time.Second

	closeTimeout = 500 * time.Millisecond // bounds the close message and handshake
)

// client is one user interface on its WebSocket, attached to any number of terminals, or
// the screen of one terminal. It has three goroutines: run writes to the socket, read
// reads from it, and watch waits for changes of the pool.
//
// No output is queued for a client: run reads it from the terminals' logs when it can
// send it. A client that reads too slowly loses its place in the logs, and is told so.
type client struct {
	// Set at construction.
	server *Server
	conn   *websocket.Conn
	raw    net.Conn // network connection under conn
	access term.Access
	hands  hands         // used by read only
	wake   chan struct{} // one slot; receives a value when a reader has output or the pool has changed
	asked  chan ask      // requests, from read to run, in order

	sizing sync.Mutex
	sized  map[string]term.Handle // terminals for which the window's size counts; nil when the client has gone; guarded by sizing

	changed atomic.Bool // the pool has changed since uiEvents.compare has looked at it

	screen *attachment // not nil: this is the screen of one terminal instead of a user interface

	// Used by run only.
	streams []*stream // take turns in sending
	turns   int       // index of the stream that had the last turn
	events  uiEvents
	buf     *buffer // nil while there is nothing to send
}

// ask is a request for run to answer. If err is not nil, the request is invalid, and the
// answer says why.
type ask struct {
	request
	err error
}

// buffer has the scratch memory of a client while there is something to send.
type buffer struct{ text, frame []byte }

var buffers = sync.Pool{New: func() any { return new(buffer) }}

func (c *client) serve(request context.Context) {
	ctx, cancel := context.WithCancel(request)
	defer cancel()
	defer context.AfterFunc(c.server.draining, cancel)()
	if c.screen == nil {
		c.events.begin(c)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		defer cancel()
		c.read(ctx)
	})
	wg.Go(func() { c.watch(ctx) })
	stop := context.AfterFunc(ctx, func() { // neither a blocked write nor the close handshake may delay the end
		time.AfterFunc(closeTimeout, func() { c.raw.Close() })
	})
	defer stop()
	c.run(ctx)
	switch {
	case c.screen != nil:
		c.screen.dropped(request)
	case c.server.draining.Err() != nil:
		_ = c.conn.Close(websocket.StatusGoingAway, "the daemon is shutting down")
	case request.Err() != nil:
		_ = c.conn.Close(websocket.StatusPolicyViolation, context.Cause(request).Error())
	}
	cancel()
	c.conn.CloseNow()
	wg.Wait()
}

// run answers requests and sends output until ctx ends or a write fails.
func (c *client) run(ctx context.Context) {
	defer c.leave()
	for ctx.Err() == nil {
		if c.buf == nil {
			c.buf = buffers.Get().(*buffer)
		}
		worked, err := c.turn()
		if err != nil {
			return
		}
		if worked {
			continue
		}
		c.putBuffer()
		if err := c.wait(ctx); err != nil {
			return
		}
	}
}

// turn sends the next messages: all answers, then events, and if there are none, one
// message of one terminal. So a flood of output delays anything else by one message only.
func (c *client) turn() (worked bool, err error) {
	for more := true; more; {
		select {
		case a := <-c.asked:
			if err := c.answer(a); err != nil {
				return false, err
			}
		default:
			more = false
		}
	}
	if c.screen != nil {
		return c.screen.step()
	}
	if worked, err := c.events.step(c); worked || err != nil {
		return worked, err
	}
	for range c.streams {
		c.turns = (c.turns + 1) % len(c.streams)
		worked, err := c.streams[c.turns].step(c)
		if errors.Is(err, errStreamEnded) {
			c.unsize(c.streams[c.turns].id)
			c.drop(c.turns)
			return true, nil
		}
		if worked || err != nil {
			return worked, err
		}
	}
	return false, nil
}

// wait returns when there may be something to send, or ctx ends.
func (c *client) wait(ctx context.Context) error {
	now := time.Now()
	if c.screen != nil {
		c.screen.reader.Ready(1)
	}
	first := c.events.arm(now)
	for _, st := range c.streams {
		if due := st.arm(now); first.IsZero() || !due.IsZero() && due.Before(first) {
			first = due
		}
	}
	var timer <-chan time.Time
	if !first.IsZero() {
		t := time.NewTimer(first.Sub(now))
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-c.wake:
	case <-timer:
	case a := <-c.asked:
		c.buf = buffers.Get().(*buffer)
		return c.answer(a)
	case <-ctx.Done():
	}
	return nil
}

// answer carries out a request that concerns the streams, which run owns. It sends an
// error message if the request fails.
func (c *client) answer(a ask) error {
	if c.screen != nil {
		return c.screen.complain(a.err)
	}
	if a.err == nil {
		switch a.Type {
		case ptyPing:
			return c.send(appendPong(c.buf.frame[:0]))
		case ptyAttach:
			a.err = c.attach(a.request)
		case ptyDetach:
			c.detach(a.ID)
		case ptyAck:
			if st, _ := c.stream(a.ID); st != nil {
				st.acknowledge(a.End)
			}
		}
	}
	if a.err == nil || errors.Is(a.err, errGone) {
		return a.err
	}
	return c.send(appendError(c.buf.frame[:0], a.ID, errorFor(a.err)))
}

// errGone is returned when a message could not be sent.
var errGone = errors.New("the client does not read what is sent")

// send writes one message, which is built in c.buf.frame.
func (c *client) send(frame []byte) error {
	c.buf.frame = frame
	return c.write(websocket.MessageText, frame)
}

// write writes one message. A client that does not read it within WriteTimeout is
// dropped. Until then its terminal waits or continues without it, see output.Reader. The
// write has no context that ends with the server, because that would close the connection
// before the close message; serve handles the server's end.
func (c *client) write(kind websocket.MessageType, frame []byte) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.server.opts.WriteTimeout)
	defer cancel()
	if c.conn.Write(ctx, kind, frame) != nil {
		return errGone
	}
	return nil
}

func (c *client) putBuffer() {
	if c.buf != nil && cap(c.buf.frame) <= keptFrame && cap(c.buf.text) <= keptFrame {
		buffers.Put(c.buf)
	}
	c.buf = nil
}

// leave ends the streams and events.
func (c *client) leave() {
	for _, st := range c.streams {
		st.close()
	}
	c.streams = nil
	c.unsize("")
	c.events.end()
	c.putBuffer()
}

// watch wakes run when the pool has changed, until ctx ends.
func (c *client) watch(ctx context.Context) {
	for version := uint64(0); ; {
		next, err := c.access.Changed(ctx, version)
		if err != nil {
			return
		}
		version = next
		c.changed.Store(true)
		change.Wake(c.wake)
	}
}
