package jsonrpc

import (
	"slices"
	"sync"
)

const (
	// chunkSize is the unit in which queued messages are stored, in bytes. It holds a
	// full frame of terminal output (32 KiB before escaping).
	chunkSize = 64 << 10

	// messageCost is the cost of a queued message beyond its bytes, so that very many
	// tiny messages are bounded too. In bytes; the real cost is the message's header and
	// its share of a chunk's end.
	messageCost = 64
)

// A chunk stores messages one after the other. It belongs to one queue until the last
// message in it is released, then returns to chunks; so idle peers hold none.
type chunk struct {
	buf  [chunkSize]byte
	used int // bytes taken
	live int // messages not yet released
}

var chunks = sync.Pool{New: func() any { return new(chunk) }}

// An outgoing is one queued message.
type outgoing struct {
	data []byte
	home *chunk // the chunk that holds data; nil if data has its own memory
}

// A waiter is a sender that found its queue full. Its message is queued in order of
// arrival once there is room. Until ready is closed the sender waits and data does not
// change.
type waiter struct {
	data   []byte
	queued bool          // guarded by the peer's mu
	ready  chan struct{} // closed by admit
}

// A queue holds messages on their way to the writer, in order. It is bounded by cost:
// bytes plus messageCost for each. It is guarded by the peer's mu.
type queue struct {
	limit   int        // bytes of cost
	cost    int        // of everything queued, and of the message being written
	msgs    []outgoing // the queued messages start at head
	head    int
	tail    *chunk // where the next message is stored if it fits there
	waiters []*waiter
}

func (q *queue) empty() bool { return q.head == len(q.msgs) }

// fits reports whether a message may be queued now. One message always fits into an empty
// queue.
func (q *queue) fits(size int) bool {
	return q.cost == 0 || q.cost+size+messageCost <= q.limit
}

// push queues a copy of data.
func (q *queue) push(data []byte) {
	if len(data) > chunkSize {
		q.pushOwned(append([]byte(nil), data...))
		return
	}
	if q.tail == nil || chunkSize-q.tail.used < len(data) {
		q.tail = chunks.Get().(*chunk)
		q.tail.used = 0
	}
	c := q.tail
	at := c.used
	c.used += copy(c.buf[at:], data)
	c.live++
	q.msgs = append(q.msgs, outgoing{c.buf[at:c.used], c})
	q.cost += len(data) + messageCost
}

// extend queues a copy of the first bytes of data, and returns how many: up to most in a
// message. It adds them to the newest message, if that has room.
func (q *queue) extend(data []byte, most int) int {
	if c := q.tail; c != nil && !q.empty() {
		last := &q.msgs[len(q.msgs)-1]
		n := min(len(data), most-len(last.data), chunkSize-c.used)
		if last.home == c && n > 0 && len(last.data) > 0 {
			copy(c.buf[c.used:], data[:n])
			c.used += n
			last.data = last.data[:len(last.data)+n]
			q.cost += n
			return n
		}
	}
	n := min(len(data), most)
	q.push(data[:n])
	return n
}

// pushOwned queues data itself; its caller must not use it any more.
func (q *queue) pushOwned(data []byte) {
	q.msgs = append(q.msgs, outgoing{data: data})
	q.cost += len(data) + messageCost
}

// pop takes the oldest message. Its memory and its cost stay until release.
func (q *queue) pop() outgoing {
	m := q.msgs[q.head]
	q.msgs[q.head] = outgoing{}
	q.head++
	switch {
	case q.empty():
		q.msgs, q.head = q.msgs[:0], 0
	case q.head >= 64 && q.head >= len(q.msgs)/2:
		n := copy(q.msgs, q.msgs[q.head:])
		clear(q.msgs[n:])
		q.msgs, q.head = q.msgs[:n], 0
	}
	return m
}

// release gives back the memory of m and admits waiters.
func (q *queue) release(m outgoing) {
	q.cost -= len(m.data) + messageCost
	if c := m.home; c != nil {
		c.live--
		if c.live == 0 {
			if c == q.tail {
				q.tail = nil
			}
			chunks.Put(c)
		}
	}
	q.admit()
}

// admit queues the messages of waiters while they fit.
func (q *queue) admit() {
	n := 0
	for n < len(q.waiters) && q.fits(len(q.waiters[n].data)) {
		w := q.waiters[n]
		if w.data != nil {
			q.push(w.data)
		}
		w.queued = true
		close(w.ready)
		n++
	}
	q.waiters = slices.Delete(q.waiters, 0, n)
}

// forget removes a waiter that gave up.
func (q *queue) forget(w *waiter) {
	if i := slices.Index(q.waiters, w); i >= 0 {
		q.waiters = slices.Delete(q.waiters, i, i+1)
	}
	q.admit() // the next one may be smaller
}

// remove takes out the messages that match selects. It also drops matching messages of
// waiters; once there is room, their senders return as if their messages had been queued.
func (q *queue) remove(match func(msg []byte) bool) {
	var gone []outgoing
	q.msgs = append(q.msgs[:q.head], slices.DeleteFunc(q.msgs[q.head:], func(m outgoing) bool {
		if !match(m.data) {
			return false
		}
		gone = append(gone, m)
		return true
	})...)
	if q.empty() {
		q.msgs, q.head = q.msgs[:0], 0
	}
	for _, w := range q.waiters {
		if w.data != nil && match(w.data) {
			w.data = nil
		}
	}
	for _, m := range gone {
		q.release(m)
	}
	q.admit()
}

// drop forgets everything without sending it. Chunks still in use are left to the
// collector, because the writer may be reading one.
func (q *queue) drop() {
	*q = queue{limit: q.limit}
}
