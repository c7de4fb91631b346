package local

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"

	"github.com/coder/websocket"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/term"
)

// Bounds of the WebSocket, as docs/LOCAL-API.md has them.
const (
	maxViewers        = 128       // number of WebSockets of the person at a time
	maxViewersOfAgent = 16        // number of WebSockets of one agent at a time
	maxStreams        = 256       // number of terminals to which one WebSocket is attached
	historySize       = 64 << 10  // bytes of text in one pty:attached
	ackWindow         = 256 << 10 // bytes of text sent but not acknowledged at which sending pauses, for a client that acknowledges
)

// protocol is the WebSocket subprotocol that the server selects if the client offers
// subprotocols. Browsers pass their token in one.
const protocol = "tether.pty.v1"

// ui serves user interfaces on the WebSocket /pty. One client attaches to any number of
// terminals, and gets the events of all terminals that its caller may see. The zero value
// is ready. It is safe for concurrent use.
type ui struct {
	bulk bulk // bounds the rate of the data for all clients

	mu      sync.Mutex
	viewers map[term.Actor]int // how many clients each caller has
}

// come counts a client until leave is called. It returns an error if its caller has as
// many as it may.
func (u *ui) come(a term.Actor) (leave func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n, most, whose := u.viewers[a], maxViewersOfAgent, a.String()
	if a == term.User {
		most, whose = maxViewers, "your programs"
	}
	if n >= most {
		return nil, &localapi.Error{Code: localapi.CodeLimit, Message: fmt.Sprintf("%d user interfaces of %s are connected, the maximum", n, whose), Hint: "close one"}
	}
	if u.viewers == nil {
		u.viewers = map[term.Actor]int{}
	}
	u.viewers[a]++
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		if u.viewers[a]--; u.viewers[a] == 0 {
			delete(u.viewers, a)
		}
	}, nil
}

// serveUI serves a user interface.
func (s *Server) serveUI(w http.ResponseWriter, r *http.Request) error {
	return s.serveClient(w, r, func(c *client) (func(), error) { return s.ui.come(c.access.Actor()) })
}

// attach serves the screen of one terminal.
func (s *Server) attach(w http.ResponseWriter, r *http.Request, h term.Handle) error {
	return s.serveClient(w, r, func(c *client) (func(), error) { return c.attachTo(h, paramsOf(r)) })
}

// serveClient serves a client until it disconnects, the server drains, or the request's
// context ends because its token was revoked. come admits it, and returns what is to be
// done when it has gone. serveClient returns an error if the WebSocket was not opened and
// the request has no answer yet.
func (s *Server) serveClient(w http.ResponseWriter, r *http.Request, come func(*client) (leave func(), err error)) error {
	c := &client{
		server: s, access: s.access(r), hands: hands{server: s, request: r},
		wake: make(chan struct{}, 1), asked: make(chan ask, askedAhead), sized: map[string]term.Handle{},
	}
	leave, err := come(c)
	if err != nil {
		return err
	}
	defer leave()
	if err := s.enter(); err != nil {
		return err
	}
	defer s.attached.Done()
	if a := c.screen; a != nil && a.offsets {
		w.Header().Set(localapi.OffsetsHeader, "1")
	}
	raw := &hijacked{ResponseWriter: w}
	if c.conn, err = upgrade(raw, r); err != nil {
		return nil // upgrade has answered
	}
	s.stirred()
	defer s.stirred()
	c.conn.SetReadLimit(localapi.MaxFrame)
	c.raw = raw.conn
	c.serve(r.Context())
	return nil
}

// upgrade accepts a WebSocket. If that fails, it answers the request. The caller must
// have checked the Origin: the library's own check is off, because it would compare the
// Origin with the Host header, which an attacker controls by DNS rebinding.
func upgrade(w http.ResponseWriter, r *http.Request) (*websocket.Conn, error) {
	return websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: []string{protocol}})
}

// hijacked remembers the network connection that a handler takes over, so that it can be
// closed at once. Closing the websocket.Conn would wait for other goroutines that read or
// close it.
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

// ptySpawn is the body of POST /pty/spawn. Every field is optional. Without a body the
// person's login shell is started in their home directory.
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
	OK       bool    `json:"ok"`
	ID       string  `json:"id"`
	Terminal session `json:"terminal"`
}

// spawnPty starts a terminal, owned by the person, for a user interface.
func (s *Server) spawnPty(w http.ResponseWriter, r *http.Request) error {
	var req ptySpawn
	if err := decodeTyped(r, &req); err != nil {
		return err
	}
	if req.Cwd == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return localapi.BadRequest("cwd is required: no home directory: %v", err)
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

// decodeTyped decodes a body whose Content-Type is JSON; an empty body leaves into as it
// is.
func decodeTyped(r *http.Request, into any) error {
	if err := saysJSON(r); err != nil || r.ContentLength == 0 {
		return err
	}
	return decode(r, into)
}
