package agent

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"tether/platform/proc"
)

// quietAfter is how long no terminal has begun or ended, and nobody has come or gone, before memory is given back.
const quietAfter = 500 * time.Millisecond

// keepSmall returns memory that the start of the daemon, of terminals or of user interfaces needed, once it is free: a daemon mostly waits,
// for days. stop ends it.
func (a *Agent) keepSmall(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { // the start is the first change
		for version := uint64(0); ctx.Err() == nil; a.stir() {
			version, _ = a.pool.Changed(ctx, version) // ctx's end is seen above
		}
	})
	wg.Go(func() {
		for a.quiet(ctx) {
			runtime.GC() // pools of buffers are empty after the second collection
			debug.FreeOSMemory()
			_ = proc.ForgetImage() // where it cannot be done, nothing is wrong
		}
	})
	return func() { cancel(); wg.Wait() }
}

// stir says that something began or ended. It never blocks.
func (a *Agent) stir() {
	select {
	case a.stirred <- struct{}{}:
	default: // it has been said and not heard yet
	}
}

// quiet waits until something began or ended and then nothing for a while. It returns false when ctx has ended.
func (a *Agent) quiet(ctx context.Context) bool {
	var calm <-chan time.Time
	for {
		select {
		case <-a.stirred:
			calm = time.After(quietAfter)
		case <-calm:
			return true
		case <-ctx.Done():
			return false
		}
	}
}
