// Package uiws serves user interfaces on the WebSocket /pty. One client attaches to any number of terminals, and gets the events of all
// terminals that its caller may see. Server is the part of the local door that the package uses. docs/LOCAL-API.md is the contract.
package uiws

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"

	"tether/agent/localapi"
	"tether/agent/term"
)

// Bounds of the WebSocket, as docs/LOCAL-API.md has them.
const (
	MaxViewers  = 128       // number of WebSockets of the person at a time
	MaxAgents   = 16        // number of WebSockets of one agent at a time
	MaxStreams  = 256       // number of terminals to which one WebSocket is attached
	HistorySize = 64 << 10  // bytes of text in one pty:attached
	AckWindow   = 256 << 10 // bytes of text sent but not acknowledged at which sending pauses, for a client that acknowledges
)

// protocol is the WebSocket subprotocol that the server selects if the client offers subprotocols. Browsers pass their token in one.
const protocol = "tether.pty.v1"

// Server is the part of the local door that the WebSocket of user interfaces needs. All methods are safe for concurrent use.
type Server interface {
	// Access returns the pool as the caller of the request may see it.
	Access(r *http.Request) term.Access
	// Typing returns a function that returns an error if that caller may not type into a terminal. It is for one goroutine.
	Typing(r *http.Request) func(term.Info) error
	// Resize records the size of a client's window for a terminal, and gives the terminal
	// the size that fits all people's. Unsize removes the record, so that the terminal
	// can grow again. client is comparable.
	Resize(h term.Handle, client any, size term.Size) error
	Unsize(h term.Handle, client any)
	// ErrorFor returns the error with its code for the client.
	ErrorFor(err error) *localapi.Error
	// Enter counts a client until leave is called. It returns an error once the server drains.
	Enter() (leave func(), err error)
	// Stirred is called when a client has come or gone. It does not block.
	Stirred()
}

// Options configures a Handler. All fields are required.
type Options struct {
	Server       Server
	Draining     context.Context // when it is done, clients are told that the daemon ends, and are dropped
	WriteTimeout time.Duration   // how long a client may not read before it is dropped
}

// Handler serves user interfaces. It is safe for concurrent use.
type Handler struct {
	opts Options
	bulk bulk // bounds the rate of the data for all clients

	mu      sync.Mutex
	viewers map[term.Actor]int // how many clients each caller has
}

// New returns a handler without clients. It needs no close: clients end with Draining.
func New(o Options) *Handler {
	return &Handler{opts: o, viewers: map[term.Actor]int{}}
}

// come counts a client until leave is called. It returns an error if its caller has as many as it may.
func (u *Handler) come(a term.Actor) (leave func(), err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	n, most, whose := u.viewers[a], MaxAgents, a.String()
	if a == term.User {
		most, whose = MaxViewers, "your programs"
	}
	if n >= most {
		return nil, &localapi.Error{Code: localapi.CodeLimit, Message: fmt.Sprintf("%d user interfaces of %s are connected, the maximum", n, whose), Hint: "close one"}
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

// Serve serves a user interface until it disconnects, the server drains, or the request's context ends because its token was revoked. It
// returns an error if the WebSocket was not opened and the request has no answer yet.
func (u *Handler) Serve(w http.ResponseWriter, r *http.Request) error {
	access := u.opts.Server.Access(r)
	goes, err := u.come(access.Actor())
	if err != nil {
		return err
	}
	defer goes()
	leave, err := u.opts.Server.Enter()
	if err != nil {
		return err
	}
	defer leave()
	raw := &hijacked{ResponseWriter: w}
	conn, err := Upgrade(raw, r)
	if err != nil {
		return nil // Upgrade has answered
	}
	u.opts.Server.Stirred()
	defer u.opts.Server.Stirred()
	conn.SetReadLimit(localapi.MaxFrame)
	c := &client{
		handler: u, conn: conn, raw: raw.conn, access: access, mayType: u.opts.Server.Typing(r),
		wake: make(chan struct{}, 1), asked: make(chan ask, askedAhead), sized: map[string]term.Handle{},
	}
	c.serve(r.Context())
	return nil
}

// Upgrade accepts a WebSocket. If that fails, it answers the request. The caller must have checked the Origin: the library's own check is
// off, because it would compare the Origin with the Host header, which an attacker controls by DNS rebinding.
func Upgrade(w http.ResponseWriter, r *http.Request) (*websocket.Conn, error) {
	return websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true, Subprotocols: []string{protocol}})
}

// hijacked remembers the network connection that a handler takes over, so that it can be closed at once. Closing the websocket.Conn would
// wait for other goroutines that read or close it.
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

// SpawnRequest is the body of POST /pty/spawn. Every field is optional. Without a body the person's login shell is started in their home
// directory.
type SpawnRequest struct {
	Cwd     string   `json:"cwd"`
	Command []string `json:"command"` // argv instead of the shell
	Name    string   `json:"name"`
	Cols    uint16   `json:"cols"`
	Rows    uint16   `json:"rows"`
	Private bool     `json:"private"`
}

// Spawned is the answer to POST /pty/spawn.
type Spawned struct {
	OK       bool    `json:"ok"`
	ID       string  `json:"id"`
	Terminal session `json:"terminal"`
}

// SpawnedFrom returns the answer for a terminal that was started.
func SpawnedFrom(i term.Info) Spawned {
	return Spawned{OK: true, ID: string(i.ID), Terminal: sessionFrom(i)}
}
