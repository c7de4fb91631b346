package host

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"
)

// What messages of clients take of the host's memory before they have an effect is bounded over all connections: by receive buffers, and by
// what is decoded. Together, these are less than 256 MiB with 4,096 connections, of which each has a first buffer of 16 KiB.
const (
	receiveBytes = 64 << 20 // bytes: half for buffers of up to 128 KiB, half for longer ones
	decodedBytes = 64 << 20 // bytes that decoded messages are thought to take
	mostDecoded  = 32 << 20 // bytes that one is thought to take at most; the tests measure 20 MiB with maxValues
	freeDecoded  = 8 << 10  // bytes up to which a decoded message is not counted: those of 4,096 connections take 32 MiB
	perValue     = 640      // bytes that a decoded value is thought to take; a tool takes 600
	perText      = 4        // bytes for each byte of a message: it is copied, quoted and unquoted
)

// messageMemory holds these bounds.
type messageMemory struct {
	arrival               time.Duration // see Options.ArrivalTime; set once
	medium, long, decoded budget
}

func newMessageMemory(arrival time.Duration) *messageMemory {
	const buffers = receiveBytes / 2
	return &messageMemory{arrival: arrival, medium: newBudget(buffers, buffers/4), long: newBudget(buffers, buffers/4), decoded: newBudget(decodedBytes, mostDecoded)}
}

// A budget is a number of bytes that connections share. Each name has a part of it at most, so that one name, with however many connections,
// makes no other wait. The host's own token has no such bound. Those who wait are served in order, except that a name that has its part is
// passed over.
//
// Who holds bytes of decoded waits for nothing but locks; who waits for decoded may hold bytes of medium and long, and who waits for long
// those of medium. So nobody waits in a circle.
type budget struct {
	mu      sync.Mutex
	part    int            // bytes that one name has at most; set once
	free    int            // guarded by mu, as what follows
	used    map[string]int // by name
	waiting []*claim       // oldest first
}

type claim struct {
	name string
	n    int
	done chan struct{} // closed when the bytes are the claim's; guarded by the budget's lock
}

func newBudget(most, part int) budget {
	return budget{part: part, free: most, used: make(map[string]int)}
}

// take waits for n bytes, at most a name's part, or until ctx ends.
func (b *budget) take(ctx context.Context, name string, n int) error {
	b.mu.Lock()
	if len(b.waiting) == 0 && b.fitsLocked(name, n) {
		b.takeLocked(name, n)
		b.mu.Unlock()
		return nil
	}
	c := &claim{name: name, n: n, done: make(chan struct{})}
	b.waiting = append(b.waiting, c)
	b.serveLocked()
	b.mu.Unlock()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.waiting, c); i >= 0 {
		b.waiting = slices.Delete(b.waiting, i, i+1)
	} else {
		b.freeLocked(name, n)
	}
	b.serveLocked()
	return context.Cause(ctx)
}

// give gives n bytes back.
func (b *budget) give(name string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.freeLocked(name, n)
	b.serveLocked()
}

func (b *budget) freeLocked(name string, n int) {
	b.free += n
	if b.used[name] -= n; b.used[name] == 0 {
		delete(b.used, name)
	}
}

func (b *budget) takeLocked(name string, n int) {
	b.free -= n
	b.used[name] += n
}

// hasPartLocked reports whether a name would have more than its part with n bytes more.
func (b *budget) hasPartLocked(name string, n int) bool {
	return name != "" && b.used[name]+n > b.part
}

func (b *budget) fitsLocked(name string, n int) bool { return n <= b.free && !b.hasPartLocked(name, n) }

// serveLocked gives to those who wait what there is for them. Nobody overtakes who waits for more than there is.
func (b *budget) serveLocked() {
	enough := true
	b.waiting = slices.DeleteFunc(b.waiting, func(c *claim) bool {
		if !enough || b.hasPartLocked(c.name, c.n) {
			return false
		}
		if enough = c.n <= b.free; enough {
			b.takeLocked(c.name, c.n)
			close(c.done)
		}
		return enough
	})
}

// recvMemory is what one connection has of the buffers; it implements wsconn.Memory. Apart from how it is made, it belongs to the goroutine that
// receives.
type recvMemory struct {
	all  *messageMemory
	name string // of the principal
	late func() // ends the connection because a message takes too long to arrive; set before anything is received

	medium, long int         // bytes that it has of the budgets
	arriving     *time.Timer // calls late; nil before the first longer message
}

func (h *Host) newRecvMemory(p Principal) *recvMemory {
	return &recvMemory{all: h.messages, name: p.Name}
}

// Reserve implements wsconn.Memory.
func (i *recvMemory) Reserve(ctx context.Context, n int) error {
	from, has := &i.all.medium, &i.medium
	if i.medium > 0 {
		from, has = &i.all.long, &i.long
	}
	n = min(n, from.part)
	if err := from.take(ctx, i.name, n); err != nil {
		return err
	}
	*has = n
	if i.arriving == nil {
		i.arriving = time.AfterFunc(i.all.arrival, i.late)
	} else {
		i.arriving.Reset(i.all.arrival)
	}
	return nil
}

// Arrived implements wsconn.Memory.
func (i *recvMemory) Arrived() { i.arriving.Stop() }

// Release implements wsconn.Memory.
func (i *recvMemory) Release() {
	if i.medium > 0 {
		i.arriving.Stop()
		i.all.medium.give(i.name, i.medium)
	}
	if i.long > 0 {
		i.all.long.give(i.name, i.long)
	}
	i.medium, i.long = 0, 0
}

// decoding waits until a message with these params may be decoded and take effect. done is called after that.
func (c *conn) decoding(ctx context.Context, params []byte) (done func(), err error) {
	n := decodedSize(params)
	if n <= freeDecoded {
		return func() {}, nil
	}
	b, name := &c.h.messages.decoded, c.remote.principal.Name
	if err := b.take(ctx, name, n); err != nil {
		return nil, err
	}
	return func() { b.give(name, n) }, nil
}

// decodedSize is what params are thought to take once they are decoded, in bytes. Each value but the first follows a comma, a colon or an
// opening bracket, and no member's value is counted twice: its colon is not.
func decodedSize(params []byte) int {
	values := 1 + bytes.Count(params, []byte{','}) + bytes.Count(params, []byte{'['}) + bytes.Count(params, []byte{'{'})
	return min(perValue*min(values, maxValues)+perText*len(params), mostDecoded)
}
