package bounded

import (
	"context"
	"sync"

	"tether/internal/change"
)

// Slots bounds how much goes on at a time: in all, and of each key. Something may have
// several keys, and gets its slots together: what waits for one keeps none of another.
// The zero value has no bounds. It is safe for concurrent use.
type Slots struct {
	All, Each int // 0: no bound. Set before use

	mu    sync.Mutex
	taken int
	of    map[string]int
	freed change.Signal
}

// Try takes a slot, and returns false if there is none. done gives it back, and must be
// called once.
func (s *Slots) Try(keys ...string) (done func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tryLocked(keys)
}

// Take is Try that waits until there is a slot or ctx ends.
func (s *Slots) Take(ctx context.Context, keys ...string) (done func(), err error) {
	for {
		s.mu.Lock()
		done, ok := s.tryLocked(keys)
		freed := s.freed.Next()
		s.mu.Unlock()
		if ok {
			return done, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *Slots) tryLocked(keys []string) (done func(), ok bool) {
	if s.All > 0 && s.taken >= s.All {
		return nil, false
	}
	for _, key := range keys {
		if s.Each > 0 && s.of[key] >= s.Each {
			return nil, false
		}
	}
	s.addLocked(keys, 1)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.addLocked(keys, -1)
		s.freed.Raise()
	}, true
}

func (s *Slots) addLocked(keys []string, n int) {
	s.taken += n
	for _, key := range keys {
		if s.of == nil {
			s.of = map[string]int{}
		}
		if s.of[key] += n; s.of[key] == 0 {
			delete(s.of, key)
		}
	}
}
