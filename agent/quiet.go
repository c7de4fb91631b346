package agent

import (
	"context"
	"sync"
	"time"
)

// quietAfter is how long the daemon must be quiet before it returns memory to the system:
// no terminal begins or ends, and nobody comes or goes.
const quietAfter = 500 * time.Millisecond

// keepSmall returns memory to the system that starting the daemon, terminals or user
// interfaces needed: a daemon mostly waits, for days. stop ends it.
func (a *Agent) keepSmall(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { // the start is the first change
		for version := uint64(0); ctx.Err() == nil; a.idle.Stir() {
			version, _ = a.pool.Changed(ctx, version) // ctx's end is seen above
		}
	})
	wg.Go(func() { a.idle.Run(ctx) })
	return func() { cancel(); wg.Wait() }
}
