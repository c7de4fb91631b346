package mcp

import (
	"errors"
	"maps"
	"slices"
	"sync"
)

var (
	// ErrTooManyAgents is returned by Servers.Of when as many principals as are allowed have sessions.
	ErrTooManyAgents = errors.New("mcp: too many agents are connected")
	// ErrServersClosed is returned by Servers.Of after Close.
	ErrServersClosed = errors.New("mcp: the servers are closed")
)

// Servers are the servers of one door, one for each principal: an agent's terminals belong to its principal, and sessions to its server.
// The zero value allows nobody; set Max. It is safe for concurrent use.
type Servers struct {
	Max int // principals at a time; set before the first use

	mu     sync.Mutex
	of     map[string]*Server
	closed bool
}

// Of returns the principal's server, made by open at its first request. If there are Max of them, those without a session are forgotten
// first. open is called with the lock held: it must not call s.
func (s *Servers) Of(principal string, open func() *Server) (*Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, ErrServersClosed
	case s.of[principal] != nil:
		return s.of[principal], nil
	case len(s.of) >= s.Max && !s.dropIdleLocked():
		return nil, ErrTooManyAgents
	}
	if s.of == nil {
		s.of = map[string]*Server{}
	}
	s.of[principal] = open()
	return s.of[principal], nil
}

// dropIdleLocked forgets the principals without a session, and reports whether there were any.
func (s *Servers) dropIdleLocked() bool {
	before := len(s.of)
	for principal, m := range s.of {
		if m.Idle() {
			m.Close()
			delete(s.of, principal)
		}
	}
	return len(s.of) < before
}

// Each calls f with every server there is, without the lock.
func (s *Servers) Each(f func(*Server)) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.of))
	s.mu.Unlock()
	for _, m := range all {
		f(m)
	}
}

// Close ends all sessions. It may be called again.
func (s *Servers) Close() {
	s.mu.Lock()
	s.closed = true
	all := s.of
	s.of = nil
	s.mu.Unlock()
	for _, m := range all {
		m.Close()
	}
}
