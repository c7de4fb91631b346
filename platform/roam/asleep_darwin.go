package roam

import (
	"time"

	"golang.org/x/sys/unix"
)

// asleep returns how long the machine has slept since boot: the difference between the
// clock that runs during suspend and the clock that does not. Setting the wall clock
// changes neither.
func asleep() time.Duration { return clock(unix.CLOCK_MONOTONIC) - clock(unix.CLOCK_UPTIME_RAW) }

func clock(id int32) time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(id, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
