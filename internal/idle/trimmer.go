// Package idle returns a process's unused memory to the system while the process is idle.
package idle

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"

	"tether/internal/change"
	"tether/platform/proc"
)

// Trimmer collects garbage, returns free memory to the system and unmaps the program's
// file when the process becomes idle. It is safe for concurrent use.
type Trimmer struct {
	after   time.Duration
	stirred chan struct{} // 1 slot
}

// New returns a Trimmer. The process counts as idle when Stir was not called for the time
// after.
func New(after time.Duration) *Trimmer { return &Trimmer{after, make(chan struct{}, 1)} }

// Stir reports that the process is active. It does not block.
func (t *Trimmer) Stir() {
	change.Wake(t.stirred) // Run has not received the last one yet
}

// Run trims each time the process becomes idle, until ctx ends. Without calls of Stir it
// does nothing and does not wake the process.
func (t *Trimmer) Run(ctx context.Context) {
	for t.calm(ctx) {
		runtime.GC() // pools of buffers are empty only after a second collection, which FreeOSMemory makes
		debug.FreeOSMemory()
		_ = proc.ForgetImage() // fails on systems that do not support it
	}
}

// calm blocks until Stir was called and the process is idle again, and returns true. It
// returns false when ctx ends.
func (t *Trimmer) calm(ctx context.Context) bool {
	var calm <-chan time.Time
	for {
		select {
		case <-t.stirred:
			calm = time.After(t.after)
		case <-calm:
			return true
		case <-ctx.Done():
			return false
		}
	}
}
