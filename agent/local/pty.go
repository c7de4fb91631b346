package local

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"tether/agent/term"
)

// Bounds of the WebSocket for user interfaces.
const (
	maxViewers  = 128       // of these WebSockets at once
	maxStreams  = 256       // terminals that one of them is attached to
	askedAhead  = 16        // answers that wait for the writer; then the client is not read
	ptyChunk    = 32 << 10  // bytes of text in one pty:output
	historySize = 64 << 10  // bytes of text in one pty:attached
	ackWindow   = 256 << 10 // bytes of text that a client which acknowledges has not
	keptFrame   = 512 << 10 // bytes of a buffer that is kept for the next message

	// messageRate is how many messages a second are read of one client in the
	// long run, and messageBurst how many at once: far more than hands make.
	messageRate  = 4000
	messageBurst = 10000

	// inputPatience is how long input waits for a child that does not read. It holds up everything else that this client sends.
	inputPatience = 2 * time.Second
)

// uiProtocol is the WebSocket subprotocol that is chosen for a client which offers some, as a browser does that has to pass a token.
const uiProtocol = "tether.pty.v1"

// ptyClient is one user interface on its WebSocket, attached to any number of terminals. run's goroutine is the only one that writes;
// read's takes what the client sends; watch's looks at the pool.
//
// Nothing is queued for a client: its readers pull. One that does not take what
// is sent loses its place in the terminals, and is told when it goes on.
type ptyClient struct {
	// Set at construction.
	server *Server
	conn   *websocket.Conn
	raw    net.Conn // under conn
	access term.Access
	hands  hands         // read's
	wake   chan struct{} // 1 slot: a reader or the pool has something
	asked  chan ptyAsk   // from read to run, in order

	changed atomic.Bool // the pool is not as events know it

	// Owned by run.
	streams []*ptyStream // they take turns
	turns   int          // index of the stream whose turn was last
	events  ptyEvents
	buf     *ptyBuffer // nil while there is nothing to send
}

// ptyAsk is a message for run to answer: err says what was wrong with it.
type ptyAsk struct {
	ptyRequest
	err error
}

// ptyBuffer is what a client needs while it sends, and gives back after.
type ptyBuffer struct{ text, frame []byte }

var ptyBuffers = sync.Pool{New: func() any { return new(ptyBuffer) }}

// pty serves a user interface until it goes, the server drains, or its token is revoked.
func (s *Server) pty(w http.ResponseWriter, r *http.Request) error {
	select {
	case s.viewers <- struct{}{}:
		defer func() { <-s.viewers }()
	default:
		return &Error{Code: CodeLimit, Message: "too many clients are connected", Hint: "close one"}
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.attached.Done()
	raw := &hijacked{ResponseWriter: w}
	conn, err := upgrade(raw, r)
	if err != nil {
		return nil // upgrade has answered
	}
	s.stirred()
	defer s.stirred()
	conn.SetReadLimit(maxFrame)
	c := &ptyClient{server: s, conn: conn, raw: raw.conn, access: s.access(r), hands: hands{server: s, request: r}, wake: make(chan struct{}, 1), asked: make(chan ptyAsk, askedAhead)}
	c.serve(r.Context())
	return nil
}

// upgrade accepts a WebSocket. Whether the Origin may is decided before, by the server: what the library would compare it with is the Host,
// and that is the attacker's own in a page behind a rebound name.
func upgrade(w http.ResponseWriter, r *http.Request) (*websocket.Conn, error) {
	return websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: []string{uiProtocol}})
}

func (c *ptyClient) serve(request context.Context) {
	ctx, cancel := context.WithCancel(request)
	defer cancel()
	defer context.AfterFunc(c.server.draining, cancel)()
	c.events.begin(c)
	var wg sync.WaitGroup
	wg.Go(func() {
		defer cancel()
		c.read(ctx)
	})
	wg.Go(func() { c.watch(ctx) })
	stop := context.AfterFunc(ctx, func() { // neither a write that blocks nor a farewell must hold up the end
		time.AfterFunc(closeMessageTimeout, func() { c.raw.Close() })
	})
	defer stop()
	c.run(ctx)
	switch {
	case c.server.draining.Err() != nil:
		_ = c.conn.Close(websocket.StatusGoingAway, "the daemon is shutting down")
	case request.Err() != nil:
		_ = c.conn.Close(websocket.StatusPolicyViolation, context.Cause(request).Error())
	}
	cancel()
	c.conn.CloseNow()
	wg.Wait()
}

// hijacked keeps hold of the connection that a handler takes over: closing a
// websocket.Conn waits for whoever is reading or closing it already.
type hijacked struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack implements http.Hijacker.
func (h *hijacked) Hijack() (conn net.Conn, rw *bufio.ReadWriter, err error) {
	conn, rw, err = http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = conn
	return conn, rw, err
}

// run answers and sends until ctx ends or the client does not take it.
func (c *ptyClient) run(ctx context.Context) {
	defer c.leave()
	for ctx.Err() == nil {
		if c.buf == nil {
			c.buf = ptyBuffers.Get().(*ptyBuffer)
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

// turn sends what is next: answers first, then what happened to terminals, then one message of one terminal, so that a flood delays nothing
// by more than that.
func (c *ptyClient) turn() (worked bool, err error) {
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
	if worked, err := c.events.step(c); worked || err != nil {
		return worked, err
	}
	for range c.streams {
		c.turns = (c.turns + 1) % len(c.streams)
		worked, err := c.streams[c.turns].step(c)
		if errors.Is(err, errStreamEnded) {
			c.drop(c.turns)
			return true, nil
		}
		if worked || err != nil {
			return worked, err
		}
	}
	return false, nil
}

// wait returns when there may be something to do.
func (c *ptyClient) wait(ctx context.Context) error {
	now := time.Now()
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
		c.buf = ptyBuffers.Get().(*ptyBuffer)
		return c.answer(a)
	case <-ctx.Done():
	}
	return nil
}

// answer does what only run may do, and tells the client what went wrong.
func (c *ptyClient) answer(a ptyAsk) error {
	if a.err == nil {
		switch a.Type {
		case ptyPing:
			return c.send(appendPong(c.buf.frame[:0]))
		case ptyAttach:
			a.err = c.attach(a.ptyRequest)
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
	return c.send(appendError(c.buf.frame[:0], a.ID, a.err))
}

// errGone wraps what kept a message from being sent.
var errGone = errors.New("the client does not read what is sent")

// send writes one message, which is built in c.buf.frame. A client that does not take it for WriteTimeout is given up.
func (c *ptyClient) send(frame []byte) error {
	c.buf.frame = frame
	ctx, cancel := context.WithTimeout(context.Background(), c.server.opts.WriteTimeout)
	defer cancel()
	if c.conn.Write(ctx, websocket.MessageText, frame) != nil {
		return errGone
	}
	return nil
}

func (c *ptyClient) putBuffer() {
	if c.buf != nil && cap(c.buf.frame) <= keptFrame && cap(c.buf.text) <= keptFrame {
		ptyBuffers.Put(c.buf)
	}
	c.buf = nil
}

// leave ends everything that run owns.
func (c *ptyClient) leave() {
	for _, st := range c.streams {
		st.close()
	}
	c.streams = nil
	c.events.end()
	c.putBuffer()
}

// watch notes that the pool has changed.
func (c *ptyClient) watch(ctx context.Context) {
	for version := uint64(0); ; {
		next, err := c.access.Changed(ctx, version)
		if err != nil {
			return
		}
		version = next
		c.changed.Store(true)
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}
