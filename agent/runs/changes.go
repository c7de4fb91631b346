package runs

import (
	"sync"

	"tether/internal/change"
)

// changes counts the versions of the runs.
type changes struct {
	mu    sync.Mutex
	count uint64
	watch change.Signal
}

func (c *changes) raise() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count++
	c.watch.Raise()
}

func (c *changes) version() (uint64, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.count + 1, c.watch.Next()
}
