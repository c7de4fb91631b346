package runs

import (
	"context"
	"time"

	"tether/internal/retry"
)

const (
	catchUpWithin = time.Second // that somebody who asks waits for the recorder
	catchUpAgain  = 10 * time.Millisecond
)

// catchUp waits until the recorder has read what was printed before the call, as far as
// its budget allows, and the rules have answered about new terminals; catchUpWithin at
// most.
func (r *recorder) catchUp() {
	if !r.recording.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), catchUpWithin)
	defer cancel()
	for waits := true; waits; waits = waits && retry.Wait(ctx, catchUpAgain) {
		done := make(chan bool, 1)
		r.post(func() { done <- r.readAll() })
		select {
		case waits = <-done:
		case <-ctx.Done():
			return
		}
	}
}

// readAll begins to record new terminals, and reads all. It reports whether one waits for
// the rules.
func (r *recorder) readAll() (waits bool) {
	r.look()
	for _, x := range r.all {
		x.read()
		waits = waits || x.waits
	}
	return waits
}
