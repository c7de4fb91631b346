package agent

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/term"
)

func forcedCollections() uint32 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.NumForcedGC
}

// Memory is given back once after the start, and not while nothing happens.
func TestMemoryIsGivenBackWhenItIsQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &Agent{pool: term.NewPool(term.Options{}), stirred: make(chan struct{}, 1)}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		before := forcedCollections()
		stop := a.keepSmall(ctx)
		time.Sleep(quietAfter - 1)
		if n := forcedCollections() - before; n != 0 {
			t.Errorf("given back %d times at once", n)
		}
		time.Sleep(time.Hour)
		if n := forcedCollections() - before; n != 2 {
			t.Errorf("%d collections within an hour, want two at its beginning", n)
		}
		for range 10 { // people attach, one after the other
			a.stir()
			time.Sleep(quietAfter / 2)
		}
		time.Sleep(time.Hour)
		if n := forcedCollections() - before; n != 4 {
			t.Errorf("%d collections after people came, want two more", n)
		}
		stop() // returns when the goroutines have ended
		stop = a.keepSmall(ctx)
		cancel()
		stop()
	})
}
