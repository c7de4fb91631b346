package leader

import (
	"sync"
	"time"
)

const (
	// questionAge is how far a question's time may be from this node's. The nodes' clocks
	// may differ by nearly as much.
	questionAge = time.Minute
	// maxTaken bounds the ids that are remembered of one generation.
	maxTaken = 1 << 16
)

// taken remembers which questions were answered, so that none is answered twice. It is
// bounded: a question that could be one that it has forgotten counts as answered. The
// zero value is ready to use; it is safe for concurrent use.
type taken struct {
	mu         sync.Mutex
	now, older generation
	floor      time.Time // of all forgotten questions, the newest time
}

// generation has the questions that came within twice questionAge, or fewer.
type generation struct {
	ids    map[string]bool
	began  time.Time
	newest time.Time
}

// first reports whether a question is new, and remembers it.
func (t *taken) first(id string, at time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.now.ids == nil || len(t.now.ids) >= maxTaken || now.Sub(t.now.began) > 2*questionAge {
		if t.older.newest.After(t.floor) {
			t.floor = t.older.newest
		}
		t.older, t.now = t.now, generation{ids: map[string]bool{}, began: now}
	}
	if !at.After(t.floor) || now.Sub(at).Abs() > questionAge || t.now.ids[id] || t.older.ids[id] {
		return false
	}
	if t.now.ids[id] = true; at.After(t.now.newest) {
		t.now.newest = at
	}
	return true
}
