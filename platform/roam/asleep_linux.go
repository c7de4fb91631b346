package roam

import (
	"time"

	"golang.org/x/sys/unix"
)

// asleep is the difference between the clock that runs during suspend and the one that does not. Setting the wall clock moves neither.
func asleep() time.Duration { return clock(unix.CLOCK_BOOTTIME) - clock(unix.CLOCK_MONOTONIC) }

func clock(id int32) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(id, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
