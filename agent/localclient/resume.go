package localclient

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"tether/agent/localapi"
	"tether/internal/retry"
)

// Set once, before anything runs. Tests of commands raise them, so that they do not
// depend on the speed of the machine.
var (
	// AwayTimeout is how long a stream waits for the next daemon.
	AwayTimeout = 10 * time.Second
	// MissingTimeout is how long it waits for the terminal once a daemon answers, because
	// the daemon may resume terminals late.
	MissingTimeout = 5 * time.Second
)

const (
	firstPause = 5 * time.Millisecond   // between two attempts; each further one is twice as long
	lastPause  = 100 * time.Millisecond // the longest
	// steady is how long a stream must have lasted before it gets the whole time for the
	// next comeback, which is tried at once.
	steady = time.Second
)

// Comeback makes a stream go on at the next daemon when the present one is killed or
// replaced. One goroutine may use it.
type Comeback struct {
	ID      string                      // of the terminal, for messages; "" if the stream is not of one
	Timeout time.Duration               // how long it waits for the next daemon; default AwayTimeout
	Revive  func(context.Context) error // if not nil, starts a daemon where the present one has crashed
	Told    func(took time.Duration)    // if not nil, is called after each comeback

	began time.Time // of the present comeback
	back  time.Time // when the last one has succeeded
}

// Do calls open until it succeeds, after the stream has ended with cause. open may return
// ErrDropped to give up. The error is ctx's, or wraps ErrDropped.
func (b *Comeback) Do(ctx context.Context, cause error, open func() error) error {
	pause, next := time.Duration(0), firstPause
	if time.Since(b.back) > steady {
		b.began = time.Now()
	} else {
		pause, next = lastPause, lastPause
	}
	timeout := cmp.Or(b.Timeout, AwayTimeout)
	for answered := (time.Time{}); ; pause, next = next, min(2*next, lastPause) {
		if !retry.Wait(ctx, pause) {
			return ctx.Err()
		}
		if b.Revive != nil && !errors.Is(cause, ErrStopped) {
			_ = b.Revive(ctx) // at each attempt, because a dying daemon may still seem to run
		}
		err := open()
		if err == nil {
			if b.back = time.Now(); b.Told != nil {
				b.Told(b.back.Sub(b.began))
			}
			return nil
		}
		if remote, ok := errors.AsType[*localapi.Error](err); ok && remote.Code != localapi.CodeClosing && answered.IsZero() {
			answered = time.Now()
		}
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, ErrDropped):
			return err
		case !answered.IsZero() && time.Since(answered) > MissingTimeout && b.ID != "":
			return fmt.Errorf("%w: the next daemon does not have %s: %w", ErrDropped, b.ID, err)
		case !answered.IsZero() && time.Since(answered) > MissingTimeout:
			return fmt.Errorf("%w: the next daemon: %w", ErrDropped, err)
		case time.Since(b.began) > timeout:
			return &GoneError{b.ID, timeout}
		}
	}
}

// GoneError says that no daemon has answered in time. It wraps ErrDropped.
type GoneError struct {
	ID string // of the terminal, or ""
	in time.Duration
}

// Error implements error.
func (e *GoneError) Error() string {
	text := fmt.Sprintf("%v, and no daemon has started within %v", ErrDropped, e.in)
	if e.ID != "" {
		text += "; " + e.ID + " keeps running"
	}
	return text
}

// Unwrap returns ErrDropped.
func (e *GoneError) Unwrap() error { return ErrDropped }
