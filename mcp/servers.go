package mcp

import (
	"errors"
	"maps"
	"slices"
	"sync"
)

var (
	// ErrTooManyAgents is returned by Servers.Of when Max principals have sessions.
	ErrTooManyAgents = errors.New("mcp: too many agents are connected")
	// ErrServersClosed is returned by Servers.Of after Close.
	ErrServersClosed = errors.New("mcp: the servers are closed")
)

// Servers holds the servers of one door, one for each principal, because terminals belong
// to principals. The zero value allows no principal; set Max. It is safe for concurrent
// use.
type Servers struct {
	Max int // principals with a server at the same time; set before the first use

	mu     sync.Mutex
	of     map[string]*Server
	closed bool
}

// Of returns the principal's server. If there is none, open makes it; if there are
// already Max servers, Of first closes those that are idle. open is called with the lock
// held, so it must not call s. Errors: ErrTooManyAgents, ErrServersClosed.
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

// dropIdleLocked closes the idle servers and reports whether there were any.
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

// Each calls f with each present server, without the lock.
func (s *Servers) Each(f func(*Server)) {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.of))
	s.mu.Unlock()
	for _, m := range all {
		f(m)
	}
}

// Close closes all servers. It may be called again.
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
