package retry_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"tether/internal/retry"
)

func TestWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !retry.Wait(t.Context(), time.Hour) || time.Since(began) != time.Hour {
			t.Errorf("an hour took %v", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if began = time.Now(); retry.Wait(ctx, time.Hour) || time.Since(began) != time.Minute {
			t.Errorf("a minute took %v", time.Since(began))
		}
	})
}
