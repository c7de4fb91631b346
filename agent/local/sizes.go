package local

import (
	"sync"

	"tether/agent/term"
)

// sizes has the screen sizes of people: of attached ones, and of the windows of user
// interfaces. A terminal gets the smallest width and the smallest height of them, so that
// everybody sees all of it. When one leaves, it can grow again. The zero value is ready.
// It is safe for concurrent use.
type sizes struct {
	mu  sync.Mutex
	all map[term.ID]map[any]term.Size // by client: an *attachment or a *client
}

// want records the size of a person's screen and gives the terminal the size that fits
// all. Errors are those of Handle.Resize.
func (s *sizes) want(h term.Handle, who any, size term.Size) error {
	if min(size.Cols, size.Rows) == 0 || max(size.Cols, size.Rows) > maxSide {
		return h.Resize(size) // returns an error, since it is invalid
	}
	s.mu.Lock()
	if s.all == nil {
		s.all = map[term.ID]map[any]term.Size{}
	}
	if s.all[h.ID()] == nil {
		s.all[h.ID()] = map[any]term.Size{}
	}
	s.all[h.ID()][who] = size
	s.mu.Unlock()
	err := s.settle(h, size)
	if err != nil {
		s.leave(h, who)
	}
	return err
}

// leave removes a person's screen. After the last one, the terminal keeps its size.
func (s *sizes) leave(h term.Handle, who any) {
	s.mu.Lock()
	some := s.all[h.ID()]
	_, was := some[who]
	delete(some, who)
	left := len(some)
	if left == 0 {
		delete(s.all, h.ID())
	}
	s.mu.Unlock()
	if was && left > 0 {
		_ = s.settle(h, term.Size{Cols: maxSide, Rows: maxSide}) // it may have exited
	}
}

// maxSide is the greatest width and height of a terminal, see term.Handle.Resize.
const maxSide = 1000

// settle gives the terminal the size that fits all and is at most want. People may come
// or go meanwhile; the last call makes it fit.
func (s *sizes) settle(h term.Handle, want term.Size) error {
	for {
		size := s.fit(h.ID(), want)
		if err := h.Resize(size); err != nil {
			return err
		}
		if s.fit(h.ID(), want) == size {
			return nil
		}
	}
}

// fit returns want, reduced to what fits all attached clients.
func (s *sizes) fit(id term.ID, want term.Size) term.Size {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, size := range s.all[id] {
		want.Cols, want.Rows = min(want.Cols, size.Cols), min(want.Rows, size.Rows)
	}
	return want
}
