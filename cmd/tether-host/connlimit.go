package main

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"

	"tether/internal/bounded"
)

// connLimiter bounds idle connections, such as half-open ones and slow handshakes, and
// concurrent requests. If there are too many idle connections, it closes the one that has
// waited longest, so that a quick client is served, however many are slow.
type connLimiter struct {
	most   int           // set once
	asking bounded.Slots // of requests that are being served, and WebSockets

	mu      sync.Mutex
	waiting *list.List                 // of net.Conn, the longest waiting first
	at      map[net.Conn]*list.Element // the waiting ones
}

func newConnLimiter(most int) *connLimiter {
	return &connLimiter{most: most, asking: bounded.Slots{All: 2 * most}, waiting: list.New(), at: map[net.Conn]*list.Element{}}
}

// state is called by the server when a connection's state changes.
func (c *connLimiter) state(conn net.Conn, s http.ConnState) {
	switch s {
	case http.StateNew, http.StateIdle:
		if oldest := c.wait(conn); oldest != nil {
			drop(oldest)
		}
	case http.StateClosed, http.StateHijacked:
		c.leave(conn)
	}
}

// wait adds a connection to the waiting ones, and returns the one that must be closed, or
// nil.
func (c *connLimiter) wait(conn net.Conn) (oldest net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at[conn] == nil {
		c.at[conn] = c.waiting.PushBack(conn)
	}
	if c.waiting.Len() <= c.most {
		return nil
	}
	oldest = c.waiting.Front().Value.(net.Conn)
	c.removeLocked(oldest)
	return oldest
}

func (c *connLimiter) leave(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(conn)
}

func (c *connLimiter) removeLocked(conn net.Conn) {
	if e := c.at[conn]; e != nil {
		c.waiting.Remove(e)
		delete(c.at, conn)
	}
}

// drop closes a connection without TLS's closing message, because writing that could
// block.
func drop(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	_ = conn.Close() // it is gone even if that fails
}

// connKey is the key of the connection in a request's context.
type connKey struct{}

func withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, conn)
}

// handler serves requests, and refuses them while too many are served.
func (c *connLimiter) handler(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if conn, ok := r.Context().Value(connKey{}).(net.Conn); ok {
			c.leave(conn) // from now on; reading the body has a time limit of its own
		}
		done, ok := c.asking.Try()
		if !ok {
			w.Header().Set("Connection", "close")
			w.Header().Set("Retry-After", "1")
			http.Error(w, "too many requests at a time", http.StatusServiceUnavailable)
			return
		}
		defer done()
		h.ServeHTTP(w, r)
	})
}
