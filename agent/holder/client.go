package holder

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"tether/agent/flow"
	"tether/platform/ipc"
	"tether/platform/rawio"
)

// Client is a daemon's connection to one holder. It has the methods of term.PTY. Its
// methods may be called concurrently, but Read and WaitReadable only from one goroutine
// at a time.
//
//	connected ──StreamFrom──▶ streaming ──Close, replaced, holder gone──▶ over
//
// It has one goroutine. That ends with the connection or, if this process has started the
// holder, with the holder's process, for which it waits.
type Client struct {
	// Set at construction.
	id           string
	path         string // of the socket
	conn         net.Conn
	process      *os.Process         // the holder if this process started it, else nil
	faults       string              // see Faults; set before the client is used
	inputs       *flow.Typing        // shared with other clients, see Options
	features     uint64              // agreed
	state        state               // of the holder when this client connected
	direct       func(p []byte) bool // set before the stream begins, see Direct
	notes        []Checkpoint
	screens      []Checkpoint
	disconnected chan struct{} // closed by readLoop when the connection has ended
	reaped       chan struct{} // closed after process was waited for; at once if there is none
	typing       chan struct{} // 1 slot: one piece of input at a time
	looking      chan struct{} // 1 slot: the holder is asked for one look at a time

	// keyboard is the pty itself, for input: a key then costs one system call instead of
	// a request that must wake the holder. It keeps the terminal open: while this process
	// has it, the child does not see a hang-up when the holder is killed, and neither do
	// its background processes after its exit. So it is closed with the connection, and
	// at the exit.
	keyboard ipc.Passed

	wmu sync.Mutex // serialises writes to conn; held across a write, which Close unblocks

	mu       sync.Mutex
	changed  sync.Cond // of mu: anything below
	in       inflow
	meta     []byte
	exit     *exitRecord
	err      error // why the connection has ended
	detached bool  // Close was called: nobody will read the remaining output
	requests map[uint32]chan reply
	lastID   uint32
}

// newClient exchanges hellos on conn, a connection to the socket at path, and reads the
// state of the holder with that id. It owns conn from now on, and closes it if it fails.
func newClient(ctx context.Context, o Options, id, path string, conn net.Conn, process *os.Process) (*Client, error) {
	c := &Client{
		id: id, path: path, conn: conn, process: process, disconnected: make(chan struct{}), reaped: make(chan struct{}), typing: make(chan struct{}, 1), looking: make(chan struct{}, 1),
		requests: map[uint32]chan reply{},
	}
	c.changed.L = &c.mu
	if c.inputs = o.Inputs; c.inputs == nil {
		c.inputs = new(flow.Typing)
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	in, err := c.handshake(o.Key)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		conn.Close()
		c.keyboard.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, fmt.Errorf("connect to holder %s: %w", id, err)
	}
	go c.readLoop(in)
	return c, nil
}

func (c *Client) handshake(key []byte) (*frames, error) {
	if err := c.conn.SetDeadline(time.Now().Add(helloTime)); err != nil {
		return nil, err
	}
	conn := &ipc.Receiver{Conn: c.conn, To: &c.keyboard}
	in := &frames{r: bufio.NewReaderSize(conn, 4<<10), known: func(k kind) bool { return k >= kindState && k <= kindReplaced || k == kindShown }}
	var err error
	if c.features, err = introduce(c.conn, in.r, key, c.id); err != nil {
		return nil, err
	}
	for ready := false; !ready; {
		if ready, err = c.readFirst(in); err != nil {
			return nil, err
		}
	}
	conn.Over = true
	c.conn = rawio.Wrap(c.conn) // not earlier: only the socket itself receives a descriptor
	conn.Conn = c.conn
	return in, c.conn.SetDeadline(time.Time{})
}

// readFirst handles one of the frames before ready.
func (c *Client) readFirst(in *frames) (ready bool, err error) {
	k, size, err := in.next()
	if err != nil {
		return false, err
	}
	p, err := in.payload(size)
	if err != nil {
		return false, err
	}
	switch k {
	case kindState:
		c.state, err = decodeState(p)
	case kindMeta:
		c.meta = slices.Clone(p)
	case kindNote:
		var note Checkpoint
		note, err = decodeCheckpoint(&fields{b: p}, maxBlob)
		c.notes = append(c.notes, note)
	case kindShown:
		var screen Checkpoint
		screen, err = decodeCheckpoint(&fields{b: p}, maxShown)
		c.screens = append(c.screens, screen)
	case kindReady:
		return true, nil
	case kindExit:
		err = c.gotExit(p)
	case kindReplaced:
		err = ErrReplaced
	default:
		err = errFrame
	}
	return false, err
}

// readLoop handles the holder's frames until the connection ends.
func (c *Client) readLoop(in *frames) {
	var err error
	for err == nil {
		err = c.readFrame(in)
	}
	c.conn.Close()
	c.keyboard.Close()
	c.mu.Lock()
	if c.err == nil {
		c.err = ErrLost
		if errors.Is(err, errFrame) || errors.Is(err, errSize) || errors.Is(err, ErrReplaced) {
			c.err = err
		}
	}
	for _, answer := range c.requests {
		close(answer)
	}
	c.requests = nil
	c.changed.Broadcast()
	c.mu.Unlock()
	close(c.disconnected)
	if c.process != nil {
		_, _ = c.process.Wait()
		close(c.reaped)
	}
}

func (c *Client) readFrame(in *frames) error {
	if in.owes {
		c.acknowledgeDirect(in)
	}
	k, size, err := in.next()
	if err != nil {
		return err
	}
	if k == kindData {
		return c.readData(in, size)
	}
	p, err := in.payload(size)
	if err != nil {
		return err
	}
	switch k {
	case kindReply:
		return c.gotReply(p)
	case kindExit:
		return c.gotExit(p)
	case kindReplaced:
		return ErrReplaced
	default:
		return errFrame
	}
}

func (c *Client) gotReply(p []byte) error {
	r, err := decodeReply(p)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if answer, ok := c.requests[r.request]; ok { // otherwise nobody waits for it any more
		delete(c.requests, r.request)
		answer <- r // has room for it
	}
	return nil
}

func (c *Client) gotExit(p []byte) error {
	e, err := decodeExit(p)
	if err != nil {
		return err
	}
	c.keyboard.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exit == nil {
		c.exit = &e
	}
	c.changed.Broadcast()
	return nil
}

// send writes one frame.
func (c *Client) send(frame []byte) error {
	if c.write(frame) != nil {
		return c.ended()
	}
	return nil
}

// write is send, but on failure it does not wait for the reason.
func (c *Client) write(frame []byte) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	_, err := c.conn.Write(frame)
	return err
}

// ended returns why the connection is over, after a failed write. The holder has closed
// it then; ended waits until its earlier messages were read.
func (c *Client) ended() error {
	<-c.disconnected
	return c.Err()
}

// Done is closed when the connection is over.
func (c *Client) Done() <-chan struct{} { return c.disconnected }

// Err returns why the connection is over, nil while it is not: ErrDetached, ErrReplaced,
// ErrLost, or an error of the framing.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Close ends the connection; the holder and the child continue. It unblocks all waiting
// calls. A second call does nothing.
func (c *Client) Close() error {
	c.mu.Lock()
	c.detached = true
	if c.err == nil {
		c.err = ErrDetached
	}
	c.changed.Broadcast()
	c.mu.Unlock()
	c.conn.Close()
	<-c.disconnected
	return nil
}
