package roam

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ticks is goTicks with a timer of the kernel. Go waits for its own timers in
// epoll_pwait(2), which Linux may end 0.1 % late. From the moment when a timer is due
// until it runs, Go's monitor thread wakes every 20 µs: up to 25 times for a timer of 3
// s.
func ticks(ctx context.Context, every time.Duration) (next func() error, stop func()) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return goTicks(ctx, every)
	}
	timer := os.NewFile(uintptr(fd), "timerfd")
	interval := unix.NsecToTimespec(int64(every))
	if err := unix.TimerfdSettime(fd, 0, &unix.ItimerSpec{Interval: interval, Value: interval}, nil); err != nil {
		_ = timer.Close()
		return goTicks(ctx, every)
	}
	detach := context.AfterFunc(ctx, func() { _ = timer.Close() })
	next = func() error {
		var count [8]byte // the number of ticks since the last read, which is not used
		if _, err := timer.Read(count[:]); ctx.Err() == nil {
			return err
		}
		return ctx.Err()
	}
	return next, func() { detach(); _ = timer.Close() }
}
