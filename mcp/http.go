package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/internal/jsonspan"
)

// statelessSince is the first version of the protocol without sessions.
const statelessSince = "2026-07-28"

// Stateless reports whether a request is in a version of the protocol without sessions.
func Stateless(r *http.Request) bool { return r.Header.Get("Mcp-Protocol-Version") >= statelessSince }

// Path is the path at which servers serve MCP over HTTP.
const Path = "/mcp"

// AtPath returns the request, for Path if it is for Path with a slash at the end: that is
// how some clients write the URL that they are configured with, and few follow a redirect
// of a POST.
func AtPath(r *http.Request) *http.Request {
	if r.URL.Path != Path+"/" {
		return r
	}
	r = r.Clone(r.Context())
	r.URL.Path, r.URL.RawPath = Path, ""
	return r
}

// requestHeader has the id by which callContext finds the HTTP request of a call.
// ServeHTTP sets it and overwrites a client's value.
const requestHeader = "Tether-Request"

// ServeHTTP serves the principal over streamable HTTP, in protocol versions with and
// without sessions. The caller must have checked that the request is the principal's. A
// request in a session of another node (see Options.Node) is served without the state of
// that session: calls are answered, but the client gets no notifications and cannot
// subscribe to resources.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.ctx.Err() != nil {
		http.Error(w, "the server is shutting down", http.StatusServiceUnavailable)
		return
	}
	r = r.Clone(r.Context())
	id, forget := s.requests.add(r.Context())
	defer forget()
	r.Header.Set(requestHeader, id)
	session := r.Header.Get(sessionHeader)
	out := newAnswer(w)
	defer out.end()
	out.ids = s.ids
	forgotten, ok := s.message(out, r)
	defer forgotten()
	if !ok {
		return
	}
	if Stateless(r) {
		s.modern.ServeHTTP(out, r)
		return
	}
	if s.elsewhere(session) {
		if r.Method == http.MethodDelete {
			out.WriteHeader(http.StatusNoContent) // the session's node ends it later, when it needs room
			return
		}
		r.Header.Set(elsewhereHeader, "1")
		s.modern.ServeHTTP(out, r)
		return
	}
	r.Header.Del(elsewhereHeader)
	if session == "" && !s.room() {
		http.Error(out, "too many sessions", http.StatusTooManyRequests)
		return
	}
	s.uses.begin(session)
	s.stateful.ServeHTTP(out, r)
	s.uses.end(session, out.Header().Get(sessionHeader))
}

// message reads the message of a POST and puts it back as the SDK gets it, with a carrier
// if it asks for an event stream, until forget is called. It answers a message that the
// SDK does not get, and returns false.
func (s *Server) message(out *answer, r *http.Request) (forget func(), ok bool) {
	forget = func() {}
	if r.Method != http.MethodPost {
		return forget, true
	}
	given := r.Body
	body, err := io.ReadAll(io.LimitReader(given, maxBody+1))
	if len(body) > maxBody {
		out.refuse(http.StatusRequestEntityTooLarge, nil, fmt.Sprintf("a request has more than %d bytes", maxBody))
		return forget, false
	}
	if Stateless(r) || r.Header.Get(sessionHeader) != "" { // otherwise the answer's headers have the new session
		out.allowEarly(r)
	}
	if err == nil {
		if err := jsonspan.CheckText(body); err != nil {
			out.refuse(http.StatusBadRequest, idOf(body), "message: "+err.Error())
			return forget, false
		}
		message, forgotten := s.carry(out, r.Context(), body)
		forget = forgotten
		if len(message) <= maxMessage {
			if message, err = s.ids.in(message); err != nil {
				out.refuse(http.StatusBadRequest, nil, err.Error())
				return forget, false
			}
		}
		if r.ContentLength >= 0 {
			r.ContentLength = int64(len(message))
		}
		body = message
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(body), given), given} // which repeats its error
	return forget, true
}

// maxBody bounds the body of a request, in bytes. The SDK has the same bound.
const maxBody = sdk.DefaultMaxRequestBodyBytes

const sessionHeader = "Mcp-Session-Id"

// elsewhereHeader marks a request in a session of another node. ServeHTTP sets or removes
// it, whatever the client sent.
const elsewhereHeader = "Tether-Elsewhere"

// maxNode bounds the name of a node, in bytes.
const maxNode = 32

// newSession returns a new id for a session of the node.
func newSession(node string) string {
	if node == "" {
		return rand.Text()
	}
	return node + "-" + rand.Text()
}

// elsewhere reports whether the session id is one of another node. A client may invent
// such an id; it gains nothing by that.
func (s *Server) elsewhere(session string) bool {
	node, _, ok := strings.Cut(session, "-")
	return ok && s.opts.Node != "" && node != s.opts.Node && node != "" && len(node) <= maxNode
}

// room reports whether there is room for another session. It ends sessions over HTTP that
// were idle for SessionIdle, and more if there is no room otherwise: few clients end
// their sessions.
func (s *Server) room() bool {
	all := map[string]*sdk.ServerSession{}
	n := 0
	for session := range s.server.Sessions() {
		all[session.ID()] = session
		n++
	}
	for _, id := range s.uses.old(all, s.opts.SessionIdle, n-s.opts.Sessions+1) {
		n--
		all[id].Close() // does not block: the session has no request, so no call waits
	}
	return n < s.opts.Sessions
}

// uses records when each session over HTTP was last used. The SDK can end idle sessions
// itself, but counts a session with an open stream as idle.
type uses struct {
	mu  sync.Mutex
	all map[string]*use // by id of the session
}

// use records the use of one session.
type use struct {
	requests int       // requests being served
	last     time.Time // the end of the last request
}

// begin notes that a request of the session begins.
func (u *uses) begin(session string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if one := u.all[session]; one != nil {
		one.requests++
	}
}

// end notes that a request of the session has ended. If the request had no session and
// created one, that is made.
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

// left returns how long it takes until the session was idle for the time idle, or idle if
// a request is being served. ok is false if the session is not over HTTP.
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

// old returns the sessions to end: all that were idle for the time idle and, if those are
// fewer than n, the next ones that were idle longest. It removes the records of those
// sessions, and of sessions that are not in there.
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

// callContext returns a context that ends when ctx, the HTTP request of the call or the
// server ends. The protocol does not end a call when the client drops its HTTP request,
// but nobody can get the answer then. The caller calls the returned function after the
// call.
func (s *Server) callContext(ctx context.Context, req *sdk.CallToolRequest) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stops := []func() bool{context.AfterFunc(s.ctx, cancel)}
	if req.Extra != nil {
		if request := s.requests.find(req.Extra.Header.Get(requestHeader)); request != nil {
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
