package channel

import "time"

// The echo of a key is short output. The goroutine that appends it writes it to observers
// for whom nothing else waits: waking their write goroutines would delay the echo by a
// switch of threads.

const (
	// shortText is the size in bytes of output that may be an echo.
	shortText = 256

	// shortMessage bounds messages that are written without asking whether the socket
	// takes them, and the socket's backlog then. It is a small part of a socket's buffer,
	// so such a write does not block.
	shortMessage = 4 << 10 // bytes

	// promptObservers bounds for how many observers the appending goroutine writes: a
	// write takes some 5 µs, and the machine waits meanwhile.
	promptObservers = 4

	// typingTime is how long after short output somebody may still be typing.
	typingTime = 250 * time.Millisecond
)

// Wakes is the work that is left when output was appended: first it is written to
// observers, then the timer of its acknowledgement is started, for which the runtime may
// wake a thread. It is a value of the appending goroutine, on its stack. The zero value
// takes nothing: everybody is woken at once.
type Wakes struct {
	order     *Order // nil: takes nothing
	observers [promptObservers]Receiver
	n         int
	owes      *Channel // or nil
}

// Begin is called before output of size bytes is appended. If that is short, w takes the
// work.
func (w *Wakes) Begin(o *Order, size int) {
	if size <= shortText {
		w.order, o.short = o, time.Now()
	}
}

// takes reports whether w delivers to the subscriber. It does not if something else waits
// for the subscriber, or if it is behind.
func (w *Wakes) takes(s *Subscription) bool {
	o := s.out
	if w == nil || w.order == nil || w.n == len(w.observers) || o.Busy || len(o.ready) > 1 || s.lost() {
		return false
	}
	w.observers[w.n] = o.to
	w.n++
	return true
}

// Deliver makes the observers' connections send: on this goroutine if that cannot block,
// otherwise on their own. Then it does the rest of the work. It must be called without
// the lock.
func (w *Wakes) Deliver() {
	for _, to := range w.observers[:w.n] {
		if !to.Direct(shortMessage) {
			to.Wake()
		}
	}
	if w.owes != nil {
		w.order.mu.Lock()
		defer w.order.mu.Unlock()
		w.owes.ackLate(nil)
	}
}
