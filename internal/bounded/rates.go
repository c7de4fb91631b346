package bounded

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Rates limits how often something may happen for each of many keys, such as the
// addresses of clients. It remembers a bounded number of keys; those that have tried
// least are forgotten first. A Rates is safe for concurrent use.
type Rates struct {
	// Set before use: a key has Burst tries at once, and then one more in each time of
	// Every.
	Burst int
	Every time.Duration

	mu sync.Mutex
	of Map[string, *tries]
}

type tries struct {
	left    *rate.Limiter
	refused bool // since there was last one left
}

// Allow takes a try of a key, and reports whether there was one left.
func (r *Rates) Allow(key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	one, known := r.of.Get(key)
	if !known {
		one = &tries{left: rate.NewLimiter(rate.Every(r.Every), r.Burst)}
	}
	ok := one.left.Allow()
	missing := float64(r.Burst) - one.left.Tokens()
	r.of.Put(key, one, time.Now().Add(time.Duration(missing*float64(r.Every)))) // then it has all tries again
	return ok
}

// Spent reports whether a key has no try left. first is true once, until it has one
// again: that refusal should be logged.
func (r *Rates) Spent(key string) (spent, first bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one, known := r.of.Get(key)
	if !known {
		return false, false
	}
	spent = one.left.Tokens() < 1
	first, one.refused = spent && !one.refused, spent
	return spent, first
}

// Len returns how many keys lack tries.
func (r *Rates) Len() int { return r.of.Len() }
