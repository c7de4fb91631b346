package host

import (
	"reflect"
	"sync"
)

// Lock keeps the host from doing anything until the function it returns is called.
func (h *Host) Lock() (unlock func()) {
	h.mu.Lock()
	return h.mu.Unlock
}

// spent is how much of one of the budgets of the host is used, in bytes, and how many
// wait for more.
func (h *Host) spent(name string) (used, waiting int) {
	b := reflect.ValueOf(h.messages).Elem().FieldByName(name)
	mu := (*sync.Mutex)(b.FieldByName("mu").Addr().UnsafePointer())
	mu.Lock()
	defer mu.Unlock()
	for all := b.FieldByName("used").MapRange(); all.Next(); {
		used += int(all.Value().Int())
	}
	return used, b.FieldByName("waiting").Len()
}

// Decoding is how many bytes decoded messages are thought to take, and how many messages
// wait to be decoded.
func (h *Host) Decoding() (bytes, waiting int) { return h.spent("decoded") }

// Receiving is the size of the receive buffers besides their first 16 KiB, and the number
// of connections that wait for one.
func (h *Host) Receiving() (bytes, waiting int) {
	medium, m := h.spent("medium")
	long, l := h.spent("long")
	return medium + long, m + l
}

// Sending is the number of bytes that wait for slow readers, and of connections that wait
// for room.
func (h *Host) Sending() (bytes, waiting int) { return h.spent("Sending") }

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
func (h *Host) Asked() (bytes, waiting int) { return h.spent("asked") }

// TextPath is where a terminal can be had as text.
func (h *Host) TextPath(uri string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return "/terminals/" + h.terminals.ByURI[uri].ID + ".txt"
}
