package mcp

import (
	"context"
	"net/http"
	"strconv"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// statelessSince is the first version of the protocol without sessions.
const statelessSince = "2026-07-28"

// requestHeader ties a call to the HTTP request that brought it. It is set by
// ServeHTTP, whatever a client sends.
const requestHeader = "Tether-Request"

// ServeHTTP serves sessions over streamable HTTP, those of protocol versions
// with and without sessions. Whoever calls it has established that the request
// is the principal's.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.ctx.Err() != nil {
		http.Error(w, "the server is shutting down", http.StatusServiceUnavailable)
		return
	}
	r = r.Clone(r.Context())
	id, forget := s.requests.add(r.Context())
	defer forget()
	r.Header.Set(requestHeader, id)
	if r.Header.Get("Mcp-Protocol-Version") >= statelessSince {
		s.modern.ServeHTTP(w, r)
		return
	}
	if r.Header.Get("Mcp-Session-Id") == "" && s.full() {
		http.Error(w, "too many sessions", http.StatusTooManyRequests)
		return
	}
	s.stateful.ServeHTTP(w, r)
}

// full reports whether there are as many sessions as there may be.
func (s *Server) full() bool {
	n := 0
	for range s.server.Sessions() {
		n++
	}
	return n >= s.opts.Sessions
}

// requests are the HTTP requests under way. A session outlives them, and the
// protocol does not end a call when its request goes away; but then nobody can
// hear the answer any more, and nothing should wait for it.
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

// callContext is a context that ends with the call, the HTTP request that
// brought it and the server.
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
