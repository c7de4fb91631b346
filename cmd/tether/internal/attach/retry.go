package attach

import (
	"context"
	"errors"
	"time"
)

const (
	// firstPause is the first pause between two attempts.
	firstPause = 5 * time.Millisecond
	// LastPause is the longest pause.
	LastPause = 100 * time.Millisecond
)

// ErrTimeout means that no attempt succeeded within the timeout.
var ErrTimeout = errors.New("no attempt succeeded within the timeout")

// Retry spaces repeated attempts, such as attempts to reach the next daemon: each pause is twice as long as the one before, up to
// LastPause. It is not safe for concurrent use.
type Retry struct {
	timeout, pause time.Duration
	began          time.Time
}

// NewRetry starts the timeout. The caller makes its first attempt at once, and calls Wait before each further one.
func NewRetry(timeout time.Duration) *Retry {
	return &Retry{timeout, firstPause, time.Now()}
}

// Wait pauses before the next attempt. If ctx has ended or ends, it returns ctx's error at once. If the timeout has passed since the start,
// it returns ErrTimeout at once.
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

// Elapsed returns the time since NewRetry or the last Restart.
func (r *Retry) Elapsed() time.Duration { return time.Since(r.began) }

// Restart restarts the timeout. A caller uses it when an attempt has made progress.
func (r *Retry) Restart() { r.began = time.Now() }
