package agent

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"

	"tether/platform/proc"
)

// quietAfter is how long nothing has begun or ended before memory is given
// back.
const quietAfter = 500 * time.Millisecond

// keepSmall gives back what the start of the daemon or of terminals needed, and
// nothing needs any more, when that is over: a daemon mostly waits, for days.
// What it returns ends it.
func (a *Agent) keepSmall(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{}) // closed by the goroutine
	go func() {
		defer close(ended)
		for version := uint64(0); ctx.Err() == nil; {
			version, _ = a.pool.Changed(ctx, version) // ctx's end is seen above, and below
			if version = a.quiet(ctx, version); ctx.Err() == nil {
				runtime.GC() // pools of buffers are empty after the second collection
				debug.FreeOSMemory()
				_ = proc.ForgetImage() // where it cannot be done, nothing is wrong
			}
		}
	}()
	return func() { cancel(); <-ended }
}

// quiet waits until the pool's version has been the same for a while, or ctx
// ends, and returns it.
func (a *Agent) quiet(ctx context.Context, version uint64) uint64 {
	for {
		wait, cancel := context.WithTimeout(ctx, quietAfter)
		next, err := a.pool.Changed(wait, version)
		cancel()
		if err != nil {
			return version
		}
		version = next
	}
}
