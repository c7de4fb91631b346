package uplink_test

import (
	"context"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/term"
	"tether/agent/uplink"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// A host that is killed and starts empty gets, each time, everything that the log keeps,
// and later output.
func TestAHostThatIsKilledAgainAndAgain(t *testing.T) {
	const each = 5 // kills in a round
	for round := range testkit.Rounds(t, 2, 20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(round), 7))
			w := newWorld(t, host.Options{}, nil)
			_, child := w.spawn(term.Spec{})
			var flood testkit.Flood
			for kill := range each {
				for n := flood.Offset() + random.Int64N(100<<10); flood.Offset() < n; {
					child.Print(flood.Next(1 + random.IntN(3000)))
				}
				if random.IntN(2) == 0 {
					w.cut(true) // it dies without a word
				}
				if random.IntN(2) == 0 {
					child.Print(flood.Next(2000))
				}
				w.restartHost(host.Options{})
				time.Sleep(time.Duration(random.IntN(60_000)) * time.Millisecond)
				w.up()
				state := w.only()
				gaps, end, err := testkit.CheckFlood(state.Text())
				if err != nil || end != flood.Offset() || len(gaps) > 1 || len(gaps) == 1 && len(state.Text()) < 40<<10 {
					t.Fatalf("kill %d: the host has %d bytes with gaps %v, up to %d of %d, %v", kill, len(state.Text()), gaps, end, flood.Offset(), err)
				}
			}
		})
	}
}

// A host that stops reading, and everything behind it, for a minute: the person's
// terminal hardly feels it, the daemon keeps no more than its logs, the link notices, and
// the host has everything that can be had soon after.
func TestAFrozenHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		frozen := func(n int) testkit.Fault { return testkit.Fault{Kind: testkit.BlackHole, After: 20 << 10} }
		r := newRoad(t, 1, true, nil, frozen)
		r.lossy = true
		r.lend()
		r.watch(r.announced)
		person := watchLocally(t, r.pool)
		before := heap()
		began := time.Now()
		noticed, total := time.Time{}, time.Duration(0)
		for time.Since(began) < time.Minute {
			printed := time.Now()
			for n := r.flood.Offset() + 30<<10; r.flood.Offset() < n; {
				r.child.Print(r.flood.Next(3000))
			}
			held := time.Since(printed)
			if total += held; held > 200*time.Millisecond {
				t.Fatalf("the child was held for %v at a time", held)
			}
			time.Sleep(500 * time.Millisecond)
			// It may be online again by now, on another connection that the host will not
			// serve either.
			if s := r.link.Status(); noticed.IsZero() && (s.State != uplink.StateOnline || s.Since.After(began)) {
				noticed = time.Now()
			}
		}
		synctest.Wait()
		if total > time.Minute/10 {
			t.Errorf("the child was held for %v of a minute", total)
		}
		if grown := heap() - before; grown > 4<<20 {
			t.Errorf("the heap has grown by %d bytes with a log of %d", grown, roadLog)
		}
		if took := noticed.Sub(began); noticed.IsZero() || took > 31*time.Second {
			t.Errorf("noticed after %v, want two heartbeats of 15 s", took)
		}
		if err := person(r.flood.Offset()); err != nil {
			t.Errorf("the person does not see everything: %v", err)
		}
		r.calm.Store(true)
		thawed := time.Now()
		must.Do(t, r.await(t.Context(), func() bool { return r.seen.Offset() == r.flood.Offset() }))
		if took := time.Since(thawed); took > 61*time.Second {
			t.Errorf("back after %v, want the end of an attempt and the cap of the back-off", took)
		}
		t.Logf("%d bytes printed in a minute, %d of them missing at the host in %d gaps; back after %v",
			r.flood.Offset(), r.lost, r.gaps, time.Since(thawed))
	})
}

// heap is the process's heap in bytes.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// watchLocally reads the pool's one terminal as the person's own screen does, and returns
// how to end it: with an error unless it has shown the whole flood up to an offset.
func watchLocally(t *testing.T, pool *term.Pool) (end func(offset int64) error) {
	t.Helper()
	r := must.Get(pool.As(term.User).List()[0].Reader(output.ReaderOptions{View: output.ViewText, Hold: true}))(t)
	ctx, cancel := context.WithCancel(t.Context())
	var check testkit.FloodCheck
	var wrong error
	var wg sync.WaitGroup
	wg.Go(func() {
		buf := make([]byte, 32<<10)
		for {
			ev, err := r.Next(ctx, buf)
			if err == nil {
				_, err = check.Write(ev.Data)
			}
			if err != nil {
				if ctx.Err() == nil {
					wrong = err
				}
				return
			}
		}
	})
	return func(offset int64) error {
		cancel()
		wg.Wait()
		r.Close()
		if wrong == nil && check.Offset() != offset {
			wrong = io.ErrUnexpectedEOF
		}
		return wrong
	}
}
