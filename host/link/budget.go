package link

import (
	"context"
	"slices"
	"sync"
)

// A Budget is a number of bytes that connections share. Each name may take only a part of
// it, so that one name, with any number of connections, cannot make others wait. The
// host's own token has no such bound. The connections of a name are served in order;
// nobody waits behind another name's large message.
//
// A holder of decoded bytes waits for nothing but locks; a connection that waits for
// decoded may hold bytes of medium and long, and one that waits for long those of medium.
// So there is no deadlock.
type Budget struct {
	mu      sync.Mutex
	Part    int            // bytes that one name has at most; set once
	free    int            // guarded by mu, like the fields below
	used    map[string]int // by name
	waiting []*claim       // oldest first
}

type claim struct {
	name string
	n    int
	done chan struct{} // closed when the claim has been granted; guarded by the budget's lock
}

func newBudget(most, part int) Budget {
	return Budget{Part: part, free: most, used: make(map[string]int)}
}

// Take waits until a name has got n more bytes, or ctx ends. n is at most a name's part.
func (b *Budget) Take(ctx context.Context, name string, n int) error {
	if b.Try(name, n) {
		return nil
	}
	c := &claim{name: name, n: n, done: make(chan struct{})}
	b.mu.Lock()
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

// Try is Take that returns false instead of waiting.
func (b *Budget) Try(name string, n int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	ok := b.fitsLocked(name, n) && !slices.ContainsFunc(b.waiting, func(c *claim) bool { return c.name == name })
	if ok {
		b.takeLocked(name, n)
	}
	return ok
}

// Give gives n bytes back.
func (b *Budget) Give(name string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.freeLocked(name, n)
	b.serveLocked()
}

func (b *Budget) freeLocked(name string, n int) {
	b.free += n
	if b.used[name] -= n; b.used[name] == 0 {
		delete(b.used, name)
	}
}

func (b *Budget) takeLocked(name string, n int) {
	b.free -= n
	b.used[name] += n
}

func (b *Budget) fitsLocked(name string, n int) bool {
	return n <= b.free && (name == "" || b.used[name]+n <= b.Part)
}

// serveLocked grants the available bytes to waiting connections.
func (b *Budget) serveLocked() {
	waits := map[string]bool{} // names
	b.waiting = slices.DeleteFunc(b.waiting, func(c *claim) bool {
		if waits[c.name] || !b.fitsLocked(c.name, c.n) {
			waits[c.name] = true
			return false
		}
		b.takeLocked(c.name, c.n)
		close(c.done)
		return true
	})
}
