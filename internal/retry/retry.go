// Package retry waits between two attempts.
//
//	for try() != nil && retry.Wait(ctx, pause) {
//		pause = min(2*pause, most)
//	}
package retry

import (
	"context"
	"time"
)

// Wait waits for d. It returns false if ctx ends first.
func Wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
