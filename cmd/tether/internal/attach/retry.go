package attach

import (
	"context"
	"errors"
	"time"
)

const (
	// firstPause is the first pause between two attempts.
	firstPause = 5 * time.Millisecond
	// LastPause is the longest one; each is twice as long as the one before.
	LastPause = 100 * time.Millisecond
)

// ErrTimeout means that no attempt succeeded within the timeout.
var ErrTimeout = errors.New("no attempt succeeded within the timeout")

// Retry spaces repeated attempts, such as to reach the next daemon: each pause is twice as long as the one before. It has one owner.
type Retry struct {
	timeout, pause time.Duration
	began          time.Time
}

// NewRetry starts the timeout. The caller makes its first attempt at once, and calls Wait before each further one.
func NewRetry(timeout time.Duration) *Retry {
	return &Retry{timeout, firstPause, time.Now()}
}

// Wait pauses before the next attempt. It returns at once with ctx's error when ctx has ended, and with ErrTimeout when the timeout has
// passed since the beginning.
func (r *Retry) Wait(ctx context.Context) error {
	if r.Elapsed() > r.timeout && ctx.Err() == nil {
		return ErrTimeout
	}
	select {
	case <-time.After(r.pause):
		r.pause = min(2*r.pause, LastPause)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Elapsed is the time since the beginning.
func (r *Retry) Elapsed() time.Duration { return time.Since(r.began) }

// Restart restarts the timeout, because an attempt has made progress.
func (r *Retry) Restart() { r.began = time.Now() }
