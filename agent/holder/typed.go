package holder

import (
	"sync/atomic"
	"time"
)

// Typed is when input came last, at any of the holders that share it. While
// somebody types, floods rest between bursts, see [holder.rest]: a key typed
// beside a flood is then answered nearly as soon as on an idle machine. The zero
// value is ready; its methods may be called concurrently.
type Typed struct{ last atomic.Pointer[time.Time] }

const (
	typedFor = 250 * time.Millisecond // after input floods rest
	// floodRest is for how long. A Go program that waits for less than a
	// millisecond on Linux waits for 1.1 ms, in epoll_wait.
	floodRest = 500 * time.Microsecond
)

func (t *Typed) now() {
	now := time.Now()
	t.last.Store(&now)
}

// rest is how long floods are to rest now.
func (t *Typed) rest() time.Duration {
	if last := t.last.Load(); last != nil && time.Since(*last) < typedFor {
		return floodRest
	}
	return 0
}
