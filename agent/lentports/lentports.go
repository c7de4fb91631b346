// Package lentports answers a host's requests for the ports that are lent to it, with
// what the servers in the terminals answer.
//
//	s := lentports.New(lentports.Options{Terminals: pool.As, Fetch: fetch})
//	s.Serve(w, r, "lab", id) // one request
//
// The machine decides here, whatever the host has decided: which port of which terminal,
// who asks, with which method, for which path. A connection goes to this machine's
// loopback interface and to programs of the terminal alone, whatever a request says. What
// passes is exact: it is not masked, and never decompressed.
package lentports

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"tether/agent/term"
	"tether/ahp"
	"tether/internal/checkout"
	"tether/internal/clip"
	"tether/vocab"
)

// Options configures a Server. Terminals is required.
type Options struct {
	// Terminals is the pool as an actor sees it.
	Terminals func(term.Actor) term.Access
	// Fetch carries out a call of the tool fetch_page for somebody at a host, on a port
	// that is lent there. It returns soon after ctx has ended.
	Fetch func(ctx context.Context, host string, id term.ID, port vocab.LentPort, q ahp.FetchParams) ahp.FetchResult
	// Fetched, if not nil, is called for each request; who has sent it, as the host says.
	// It must not block.
	Fetched func(host string, id term.ID, port int, who string)
	// Checkouts finds the work trees of terminals' directories; nil means a Finder of its
	// own.
	Checkouts *checkout.Finder
	// FirstByte is how long a server may take until it answers, default 2 min: some build
	// a page when it is asked for.
	FirstByte time.Duration
	// Idle is how long nothing may pass in either direction, default 10 min.
	Idle time.Duration
	// Dial replaces devserver.Servers.Dial in tests.
	Dial   func(ctx context.Context, port int) (net.Conn, error)
	Logger *zerolog.Logger // nil means silence
}

// Server answers requests of all hosts. It is safe for concurrent use. The links bound
// how many there are at a time.
type Server struct {
	opts    Options
	buffers sync.Pool   // see type buffers
	silence *log.Logger // of httputil

	mu   sync.Mutex
	ways map[wayKey]*way // to ports that are lent
}

// New returns a Server.
func New(o Options) *Server {
	o.FirstByte, o.Idle = cmp.Or(o.FirstByte, 2*time.Minute), cmp.Or(o.Idle, 10*time.Minute)
	if o.Checkouts == nil {
		o.Checkouts = new(checkout.Finder)
	}
	if o.Logger == nil {
		nop := zerolog.Nop()
		o.Logger = &nop
	}
	return &Server{opts: o, silence: log.New(io.Discard, "", 0), ways: map[wayKey]*way{}}
}

// Serve answers a request of a host for a port of a terminal, see ahp.PortsPort. It
// returns soon after the request's context or the lending has ended; then it resets the
// answer, also in its middle, by a panic with http.ErrAbortHandler or a deadline of w.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, host string, id term.ID) {
	q, err := s.open(r, host, id)
	if err != nil {
		refuse(w, err)
		return
	}
	defer q.done()
	if q.call {
		s.fetch(w, r, q)
		return
	}
	s.pass(w, r, q)
}

// count counts a request that is carried out.
func (s *Server) count(q *request) {
	q.h.CountFetch(q.host, q.port.Port)
	if s.opts.Fetched != nil {
		s.opts.Fetched(q.host, q.h.ID(), q.port.Port, q.who())
	}
}

// refusal is an answer of the machine itself, in words for people.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

// maxRefusal bounds the text of a refusal, in bytes.
const maxRefusal = 500

// refuse answers with an error.
func refuse(w http.ResponseWriter, err error) {
	no, ok := errors.AsType[*refusal](err)
	if !ok {
		no = &refusal{http.StatusForbidden, err.Error()}
	}
	text := clip.Text(plain(no.text), maxRefusal)
	w.Header().Set(ahp.PortsError, text)
	http.Error(w, text, no.status)
}
