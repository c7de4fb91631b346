package host

import (
	"context"
	"sync/atomic"
	"testing/synctest"
	"time"

	"tether/host/rights"
)

// Lock keeps the host from doing anything until the function it returns is called.
func (h *Host) Lock() (unlock func()) {
	h.mu.Lock()
	return h.mu.Unlock
}

// spent is how much of a budget is used, in bytes, and how many wait for more.
func spent(b *budget) (used, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, n := range b.used {
		used += n
	}
	return used, len(b.waiting)
}

// Decoding is how many bytes decoded messages are thought to take, and how many messages
// wait to be decoded.
func (h *Host) Decoding() (bytes, waiting int) { return spent(&h.messages.decoded) }

// Receiving is the size of the receive buffers besides their first 16 KiB, and the number
// of connections that wait for one.
func (h *Host) Receiving() (bytes, waiting int) {
	medium, m := spent(&h.messages.medium)
	long, l := spent(&h.messages.long)
	return medium + long, m + l
}

// Sending is the number of bytes that wait for slow readers, and of connections that wait
// for room.
func (h *Host) Sending() (bytes, waiting int) { return spent(&h.messages.sending) }

// Straggler returns what PullDirectly of another goroutine may still do once when the
// connection has ended for which replies wait.
func (h *Host) Straggler() (pull func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.conns {
		if len(c.later) > 0 {
			return func() { c.pull() }
		}
	}
	return nil
}

// Asked is the same of the requests of agents over HTTP.
func (h *Host) Asked() (bytes, waiting int) { return spent(&h.messages.asked) }

// TextPath is where a terminal can be had as text.
func (h *Host) TextPath(uri string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return "/terminals/" + h.terminals[uri].id + ".txt"
}

// Arrival receives a longer message that arrives after the given time, in pieces if it is
// very long, and reports whether that was too late. It runs in a bubble.
func (h *Host) Arrival(after time.Duration, veryLong bool) (late bool) {
	in := h.newRecvMemory(rights.Principal{Name: "m"})
	var fired atomic.Bool
	in.late = func() { fired.Store(true) }
	defer in.Release()
	_ = in.Reserve(context.Background(), 128<<10)
	time.Sleep(after)
	if veryLong {
		_ = in.Reserve(context.Background(), 1<<20)
		time.Sleep(after)
	}
	in.Arrived()
	time.Sleep(time.Hour)
	synctest.Wait()
	return fired.Load()
}

// Budget is budget, for tests.
type Budget struct{ b budget }

// NewBudget returns one of so many bytes, of which a name may take a part.
func NewBudget(most, part int) *Budget { return &Budget{newBudget(most, part)} }

// Take is take.
func (x *Budget) Take(ctx context.Context, name string, n int) error { return x.b.take(ctx, name, n) }

// Give is give.
func (x *Budget) Give(name string, n int) { x.b.give(name, n) }
