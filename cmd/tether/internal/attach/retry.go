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

// ErrPatience is returned when an attempt has not succeeded within the patience.
var ErrPatience = errors.New("no success within the patience")

// Retry paces attempts, such as to reach the next daemon. One goroutine may use it at a time.
type Retry struct {
	patience, pause time.Duration
	began           time.Time
}

// NewRetry begins a series of attempts, the first of which needs no Wait.
func NewRetry(patience time.Duration) *Retry {
	return &Retry{patience, firstPause, time.Now()}
}

// Wait pauses before the next attempt. It returns at once with ctx's error when ctx has ended, and with ErrPatience when the patience has
// passed since the beginning.
func (r *Retry) Wait(ctx context.Context) error {
	if r.Elapsed() > r.patience && ctx.Err() == nil {
		return ErrPatience
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

// Restart moves the beginning to now: the attempt has succeeded at something.
func (r *Retry) Restart() { r.began = time.Now() }
