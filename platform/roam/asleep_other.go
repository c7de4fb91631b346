//go:build !linux && !darwin && !windows

package roam

import "time"

// start has both of Go's clocks.
var start = time.Now()

// asleep is what the wall clock has more than the other one, where there are no better two: setting the wall clock forward looks like
// sleep, which costs a look at connections that are well.
func asleep() time.Duration {
	now := time.Now()
	return now.Round(0).Sub(start.Round(0)) - now.Sub(start)
}
