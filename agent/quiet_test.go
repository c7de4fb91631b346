package agent

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/term"
	"tether/internal/idle"
)

// Memory is handed back after the start, although nothing else happens.
func TestMemoryIsHandedBackAfterTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Agent{pool: term.NewPool(term.Options{}), idle: idle.New(quietAfter)}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		stop := a.keepSmall(ctx)
		time.Sleep(time.Hour)
		if runtime.ReadMemStats(&after); after.NumForcedGC == before.NumForcedGC {
			t.Error("nothing was handed back")
		}
		stop() // returns when the goroutines have ended
		stop = a.keepSmall(ctx)
		cancel()
		stop()
	})
}
