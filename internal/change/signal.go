// Package change tells goroutines that something has changed.
package change

import (
	"context"
	"time"
)

// Signal wakes goroutines that wait for the next change of something. The zero value is
// ready. The caller guards it with the lock that guards what changes; the channels that
// Next returns need no lock.
type Signal struct{ next chan struct{} }

// Next returns a channel that is closed at the next change. All calls between two changes
// return the same.
func (s *Signal) Next() <-chan struct{} {
	if s.next == nil {
		s.next = make(chan struct{})
	}
	return s.next
}

// Raise reports a change. It does not block.
func (s *Signal) Raise() {
	if s.next != nil {
		close(s.next)
		s.next = nil
	}
}

// Awaited reports whether Next was called since the last change.
func (s *Signal) Awaited() bool { return s.next != nil }

// Wake wakes the one goroutine that receives from a channel with room for one value, or
// will receive from it. It does not block: a receiver that was woken and has not looked
// yet is not woken twice.
func Wake(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Await returns the version of something once it differs from since, or since and ctx's
// error when ctx ends. look returns the present version and the channel that is closed at
// the next change, both of the same moment.
func Await(ctx context.Context, since uint64, look func() (version uint64, next <-chan struct{})) (uint64, error) {
	for {
		version, next := look()
		if version != since {
			return version, nil
		}
		select {
		case <-next:
		case <-ctx.Done():
			return since, ctx.Err()
		}
	}
}

const (
	// soonWithin is how long a change at another node of a host may take to be known.
	soonWithin = 500 * time.Millisecond
	soonEvery  = 20 * time.Millisecond
)

// Soon reports whether something is found that another process may have made a moment
// ago: it looks at once and, for at most 500 ms, again.
func Soon(found func() bool) bool {
	for began := time.Now(); !found(); time.Sleep(soonEvery) {
		if time.Since(began) >= soonWithin {
			return false
		}
	}
	return true
}
