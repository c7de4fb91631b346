package attach

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestRetryEndsWithThePatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r, pauses := NewRetry(time.Second), 0
		for r.Wait(t.Context()) == nil {
			if pauses++; pauses == 5 {
				if took := time.Since(began); took != 155*time.Millisecond {
					t.Errorf("five pauses that double take %s", took)
				}
				r.Restart()
			}
		}
		if err := r.Wait(t.Context()); !errors.Is(err, ErrTimeout) {
			t.Errorf("after the patience: %v", err)
		}
		if took := time.Since(began); took <= 1155*time.Millisecond || took > 1155*time.Millisecond+LastPause {
			t.Errorf("it ended after %s, want a second after the restart", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end of ctx: %v", err)
		}
	})
}
