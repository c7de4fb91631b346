package mcp

import (
	"context"
	"crypto/rand"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// statelessSince is the first version of the protocol without sessions.
const statelessSince = "2026-07-28"

// Stateless reports whether a request is in a version of the protocol without sessions: each call is one by itself.
func Stateless(r *http.Request) bool { return r.Header.Get("Mcp-Protocol-Version") >= statelessSince }

// requestHeader ties a call to its HTTP request. ServeHTTP sets it, overwriting a client's value.
const requestHeader = "Tether-Request"

// ServeHTTP serves sessions over streamable HTTP, those of protocol versions with and without sessions. The caller has established that the
// request is the principal's. A session of another node (see Options.Node) is served as far as it needs no memory: calls have their answers,
// but the client hears of nothing by itself and cannot subscribe to resources.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.ctx.Err() != nil {
		http.Error(w, "the server is shutting down", http.StatusServiceUnavailable)
		return
	}
	r = r.Clone(r.Context())
	id, forget := s.requests.add(r.Context())
	defer forget()
	r.Header.Set(requestHeader, id)
	w, ended := s.carry(w, r)
	defer ended()
	if Stateless(r) {
		s.modern.ServeHTTP(w, r)
		return
	}
	session := r.Header.Get(sessionHeader)
	if s.elsewhere(session) {
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNoContent) // its node forgets it when it needs the room
			return
		}
		r.Header.Set(elsewhereHeader, "1")
		s.modern.ServeHTTP(w, r)
		return
	}
	r.Header.Del(elsewhereHeader)
	if session == "" && !s.room() {
		http.Error(w, "too many sessions", http.StatusTooManyRequests)
		return
	}
	s.uses.begin(session)
	s.stateful.ServeHTTP(w, r)
	s.uses.end(session, w.Header().Get(sessionHeader))
}

const sessionHeader = "Mcp-Session-Id"

// elsewhereHeader marks requests of sessions of other nodes. ServeHTTP sets it, overwriting a client's value.
const elsewhereHeader = "Tether-Elsewhere"

// maxNode bounds the name of a node, in bytes.
const maxNode = 32

// newSession is the id of a session of a node.
func newSession(node string) string {
	if node == "" {
		return rand.Text()
	}
	return node + "-" + rand.Text()
}

// elsewhere reports whether a session is of another node. A client that invents the id of one gets no more than without a session.
func (s *Server) elsewhere(session string) bool {
	node, _, ok := strings.Cut(session, "-")
	return ok && s.opts.Node != "" && node != s.opts.Node && node != "" && len(node) <= maxNode
}

// room reports whether there is room for another session. It may end an unused one over HTTP: clients come and go and seldom say that they
// are gone.
func (s *Server) room() bool {
	all := map[string]*sdk.ServerSession{}
	n := 0
	for session := range s.server.Sessions() {
		all[session.ID()] = session
		n++
	}
	for _, id := range s.uses.old(all, s.opts.SessionIdle, n-s.opts.Sessions+1) {
		n--
		all[id].Close() // quick: its waiting calls ended with its requests
	}
	return n < s.opts.Sessions
}

// uses are the times of use of the sessions over HTTP. The SDK could end silent ones by itself, but counts an open stream as silence.
type uses struct {
	mu  sync.Mutex
	all map[string]*use
}

// use is that of one session.
type use struct {
	requests int // under way
	last     time.Time
}

func (u *uses) begin(session string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if one := u.all[session]; one != nil {
		one.requests++
	}
}

// end notes the end of a request of a session, or of the one that began made.
func (u *uses) end(session, made string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	one := u.all[session]
	switch {
	case one != nil:
		one.requests--
	case session == "" && made != "":
		if u.all == nil {
			u.all = map[string]*use{}
		}
		one = &use{}
		u.all[made] = one
	default:
		return
	}
	one.last = time.Now()
}

// left is how long a session may go on before it was silent for idle; idle while a request is under way. ok is false for one that is not
// over HTTP.
func (u *uses) left(session string, idle time.Duration) (left time.Duration, ok bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	one := u.all[session]
	switch {
	case one == nil:
		return 0, false
	case one.requests > 0:
		return idle, true
	}
	return idle - time.Since(one.last), true
}

// old chooses the sessions to end: those that were silent for idle and, if that is less than n, those that were silent longest. It forgets
// them, and those that no longer exist.
func (u *uses) old(there map[string]*sdk.ServerSession, idle time.Duration, n int) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var silent []string
	for id, one := range u.all {
		switch {
		case there[id] == nil:
			delete(u.all, id)
		case one.requests == 0:
			silent = append(silent, id)
		}
	}
	slices.SortFunc(silent, func(a, b string) int { return u.all[a].last.Compare(u.all[b].last) })
	for len(silent) > max(n, 0) && time.Since(u.all[silent[len(silent)-1]].last) < idle {
		silent = silent[:len(silent)-1]
	}
	for _, id := range silent {
		delete(u.all, id)
	}
	return silent
}

// requests are the HTTP requests under way. A session outlives them, and the protocol does not end a call when its request goes away; but
// then nobody can hear the answer any more, and nothing should wait for it.
type requests struct {
	mu   sync.Mutex
	last int64
	open map[string]context.Context
}

func (q *requests) add(ctx context.Context) (id string, forget func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.open == nil {
		q.open = map[string]context.Context{}
	}
	q.last++
	id = strconv.FormatInt(q.last, 10)
	q.open[id] = ctx
	return id, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.open, id)
	}
}

// callContext is a context that ends with the call, the HTTP request that brought it and the server.
func (s *Server) callContext(ctx context.Context, req *sdk.CallToolRequest) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stops := []func() bool{context.AfterFunc(s.ctx, cancel)}
	if req.Extra != nil {
		s.requests.mu.Lock()
		request := s.requests.open[req.Extra.Header.Get(requestHeader)]
		s.requests.mu.Unlock()
		if request != nil {
			stops = append(stops, context.AfterFunc(request, cancel))
		}
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}
