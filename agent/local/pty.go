package local

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"tether/agent/localapi"
	"tether/agent/policy"
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

	// messageRate and messageBurst limit the messages that are read from one client: a second, and at once. Nobody types that fast.
	messageRate  = 4000
	messageBurst = 10000

	// inputPatience is how long input waits for a child that does not read. Meanwhile nothing else is read from this client.
	inputPatience = 2 * time.Second
)

// uiProtocol is the WebSocket subprotocol that the server selects if the client offers subprotocols. Browsers pass their token in one.
const uiProtocol = "tether.pty.v1"

// ptyClient is one user interface on its WebSocket, attached to any number of terminals. It has three goroutines: run writes to the socket,
// read reads from it, and watch waits for changes of the pool.
//
// Nothing is queued for a client: its readers pull. A client that reads too slowly loses its place in the terminals' logs, and is told so.
type ptyClient struct {
	// Set at construction.
	server *Server
	conn   *websocket.Conn
	raw    net.Conn // under conn
	access term.Access
	hands  hands         // used by read
	wake   chan struct{} // 1 slot: a reader or the pool has something
	asked  chan ptyAsk   // requests, from read to run, in order

	changed atomic.Bool // the pool has changed since events compared it

	// Owned by run.
	streams []*ptyStream // they take turns
	turns   int          // index of the stream that had the last turn
	events  ptyEvents
	buf     *ptyBuffer // nil while there is nothing to send
}

// ptyAsk is a request for run to answer. If err is not nil, the request is invalid, and the answer says why.
type ptyAsk struct {
	ptyRequest
	err error
}

// ptyBuffer holds the buffers of a client while it has something to send.
type ptyBuffer struct{ text, frame []byte }

var ptyBuffers = sync.Pool{New: func() any { return new(ptyBuffer) }}

// pty serves a user interface until it disconnects, the server drains, or its token is revoked.
func (s *Server) pty(w http.ResponseWriter, r *http.Request) error {
	select {
	case s.viewers <- struct{}{}:
		defer func() { <-s.viewers }()
	default:
		return &localapi.Error{Code: localapi.CodeLimit, Message: "too many clients are connected", Hint: "close one"}
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
	conn.SetReadLimit(localapi.MaxFrame)
	c := &ptyClient{server: s, conn: conn, raw: raw.conn, access: s.access(r), hands: hands{server: s, request: r}, wake: make(chan struct{}, 1), asked: make(chan ptyAsk, askedAhead)}
	c.serve(r.Context())
	return nil
}

// upgrade accepts a WebSocket. The server has checked the Origin before. The library would compare it with the Host header, which an
// attacker controls by DNS rebinding.
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
	stop := context.AfterFunc(ctx, func() { // neither a blocked write nor the close handshake may delay the end
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

// hijacked remembers the connection that a handler takes over, so that it can be closed at once: closing a websocket.Conn waits for other
// goroutines that read or close it.
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

// run answers requests and sends output until ctx ends or a write fails.
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

// turn sends the next messages: all answers, then events, then one message of one terminal. So a flood delays anything else by one message.
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

// answer carries out a request that concerns run's own state, and sends an error message if it fails.
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

// errGone is returned when a message could not be sent.
var errGone = errors.New("the client does not read what is sent")

// send writes one message, which is built in c.buf.frame. It fails if the client does not read it within WriteTimeout.
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

// watch wakes run when the pool has changed, until ctx ends.
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

// ptySpawn is the body of POST /pty/spawn. Every field is optional. Without a body it starts the person's login shell in their home directory.
type ptySpawn struct {
	Cwd     string   `json:"cwd"`
	Command []string `json:"command"` // argv instead of the shell
	Name    string   `json:"name"`
	Cols    uint16   `json:"cols"`
	Rows    uint16   `json:"rows"`
	Private bool     `json:"private"`
}

// ptySpawned is the answer to POST /pty/spawn.
type ptySpawned struct {
	OK       bool       `json:"ok"`
	ID       string     `json:"id"`
	Terminal ptySession `json:"terminal"`
}

// spawnPty starts a terminal, owned by the person, for a user interface.
func (s *Server) spawnPty(w http.ResponseWriter, r *http.Request) error {
	var req ptySpawn
	if err := decodeTyped(w, r, &req); err != nil {
		return err
	}
	if req.Cwd == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return localapi.BadMessage("cwd is required: no home directory: %v", err)
		}
		req.Cwd = home
	}
	spawn := localapi.SpawnRequest{
		Command: req.Command, Shell: len(req.Command) == 0, Name: req.Name, Cwd: req.Cwd, Cols: req.Cols, Rows: req.Rows, Private: req.Private,
	}
	h, err := s.start(r.Context(), startRequest(r.Context(), &spawn, ActorFrom(r.Context()), policy.DoorWS))
	if err != nil {
		return err
	}
	i := h.Info()
	return reply(w, ptySpawned{OK: true, ID: string(i.ID), Terminal: sessionFrom(i)})
}

// decodeTyped decodes a body whose Content-Type is JSON; an empty body leaves into as it is.
func decodeTyped(w http.ResponseWriter, r *http.Request, into any) error {
	if err := saysJSON(r); err != nil || r.ContentLength == 0 {
		return err
	}
	return decode(w, r, into)
}
