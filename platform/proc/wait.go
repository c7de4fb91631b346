package proc

import (
	"context"
	"time"
)

const (
	pauseFirst = time.Millisecond      // between two looks at the process table, doubled each time
	pauseLast  = 50 * time.Millisecond // up to this: a look costs some milliseconds of CPU
)

// wait pauses; false means that ctx was done first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
