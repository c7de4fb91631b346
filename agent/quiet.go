package agent

import (
	"context"
	"sync"
	"time"
)

// quietAfter is how long no terminal must have begun or ended, and nobody have come or gone, before memory is handed back.
const quietAfter = 500 * time.Millisecond

// keepSmall hands back memory that the start of the daemon, of terminals or of user interfaces needed: a daemon mostly waits, for days.
// stop ends it.
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
