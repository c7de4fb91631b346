// Package idle hands a process's spare memory back to the system while the process waits.
package idle

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"

	"tether/platform/proc"
)

// Trimmer collects garbage, hands free memory back and unmaps the program's file once the process is idle. It is safe for concurrent use.
type Trimmer struct {
	after   time.Duration
	stirred chan struct{} // 1 slot
}

// New returns a Trimmer for a process that counts as idle after that time without a Stir.
func New(after time.Duration) *Trimmer { return &Trimmer{after, make(chan struct{}, 1)} }

// Stir reports that the process has something to do. It never blocks.
func (t *Trimmer) Stir() {
	select {
	case t.stirred <- struct{}{}:
	default: // Run has not seen the last one yet
	}
}

// Run trims after every pause, until ctx ends. A process that is not stirred is not woken.
func (t *Trimmer) Run(ctx context.Context) {
	for t.calm(ctx) {
		runtime.GC() // pools of buffers are empty only after a second collection, which FreeOSMemory makes
		debug.FreeOSMemory()
		_ = proc.ForgetImage() // not every system can
	}
}

// calm returns true once the process was stirred and is idle again, and false when ctx has ended.
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
