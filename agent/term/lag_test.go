package term_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
)

// How long a person's terminal may wait for readers.
const (
	lagHold   = 200 * time.Millisecond
	lagWindow = 2 * time.Second
	lagQuiet  = 250 * time.Millisecond
)

// A wait is a time in which the child could not print, since the start.
type wait struct{ from, to time.Duration }

// printTimed prints without a pause for span and returns the waits.
func printTimed(child *testkit.Child, span time.Duration) []wait {
	var waits []wait
	chunk := strings.Repeat(line, 8)
	for began := time.Now(); time.Since(began) < span; {
		from := time.Since(began)
		child.Print(chunk)
		child.Print(line) // taken when the pump has done with the chunk
		if to := time.Since(began); to > from {
			waits = append(waits, wait{from, to})
		}
		<-time.After(10 * time.Millisecond) // of fake time
	}
	return waits
}

// most is the longest time that any window of lagWindow holds of the waits.
func most(waits []wait) time.Duration {
	longest := time.Duration(0)
	for _, first := range waits {
		for _, at := range []time.Duration{first.from, first.to - lagWindow} { // the sum is largest where a window begins or ends with a wait
			sum := time.Duration(0)
			for _, w := range waits {
				sum += max(0, min(w.to, at+lagWindow)-max(w.from, at))
			}
			longest = max(longest, sum)
		}
	}
	return longest
}

func TestLagSlowsTheChildOnlyALittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, smallLog, term.Spec{OnSlow: term.Lag})
		reader(t, h, output.ReaderOptions{View: output.ViewText, Hold: true})
		waits := printTimed(f, 10*time.Second)
		if got := most(waits); got != lagHold {
			t.Errorf("the child waited %v in two seconds for a reader that never reads, want %v", got, lagHold)
		}
		if len(waits) != 1 {
			t.Errorf("it waited %d times for a reader that has not caught up meanwhile: %v", len(waits), waits)
		}
	})
}

// Readers that read now and then, as they like, use up the budget and never more.
func TestLagIsBoundedInAnyTwoSeconds(t *testing.T) {
	for round := range testkit.Rounds(t, testkit.Load(100, 12), 10_000) {
		random := rand.New(rand.NewPCG(uint64(round), 5))
		pauses, longest := make([]int, 1+random.IntN(20)), 1+random.IntN(900) // in ms
		for i := range pauses {
			pauses[i] = 1 + random.IntN(longest)
		}
		synctest.Test(t, func(t *testing.T) {
			h, f, _ := start(t, smallLog, term.Spec{OnSlow: term.Lag})
			slow := reader(t, h, output.ReaderOptions{View: output.ViewText, Hold: true})
			ctx, cancel := context.WithCancel(t.Context())
			var reading sync.WaitGroup
			reading.Go(func() { readNowAndThen(ctx, slow, pauses) })
			if waits := printTimed(f, 4*time.Second); most(waits) > lagHold {
				t.Errorf("with pauses of %v ms the child waited %v in two seconds: %v", pauses, most(waits), waits)
			}
			cancel()
			reading.Wait()
		})
	}
}

// readNowAndThen reads all there is after each pause.
func readNowAndThen(ctx context.Context, r *output.Reader, pauses []int) {
	buf := make([]byte, 4096)
	for n := 0; ; n++ {
		select {
		case <-time.After(time.Duration(pauses[n%len(pauses)]) * time.Millisecond):
		case <-ctx.Done():
			return
		}
		for {
			_, ok, err := r.TryNext(buf)
			if lagged := (*output.LaggedError)(nil); err != nil && !errors.As(err, &lagged) {
				return
			}
			if !ok && err == nil {
				break
			}
		}
	}
}

func TestLagWaitsForAReaderThatKeepsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, smallLog, term.Spec{OnSlow: term.Lag})
		r := reader(t, h, output.ReaderOptions{View: output.ViewText, Hold: true})
		const count = 5000
		go func() {
			for n := range count {
				f.Print(line)
				if n%100 == 99 { // so that it is asleep for a twentieth of the time at most
					time.Sleep(time.Second)
				}
			}
			f.End(0)
		}()
		got, buf := 0, make([]byte, 4096)
		for {
			ev, err := r.Next(t.Context(), buf)
			if err != nil {
				t.Fatalf("after %d bytes: %v", got, err)
			}
			if got += len(ev.Data); ev.Mark != nil && ev.Mark.Kind == output.MarkExited {
				break
			}
			if got%(100*len(line)) < len(ev.Data) {
				time.Sleep(50 * time.Millisecond) // it is swapped out
			}
		}
		if got != count*len(line) {
			t.Errorf("%d of %d bytes arrived", got, count*len(line))
		}
	})
}

func TestNobodyWaitsWhileTyping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, f, _ := start(t, smallLog, term.Spec{OnSlow: term.Lag})
		reader(t, h, output.ReaderOptions{View: output.ViewText, Hold: true})
		type_ := func() {
			check.OK(t, h.Write(t.Context(), []byte("x")))
		}
		type_()
		flood := strings.Repeat(line, 300)
		began := time.Now()
		f.Print(flood)
		f.Print(line)
		time.Sleep(lagQuiet - time.Millisecond)
		f.Print(flood)
		f.Print(line)
		if took := time.Since(began); took != lagQuiet-time.Millisecond {
			t.Errorf("the child waited %v for a reader within %v of a key", took-(lagQuiet-time.Millisecond), lagQuiet)
		}
		time.Sleep(time.Millisecond)
		began = time.Now()
		time.AfterFunc(20*time.Millisecond, type_)
		f.Print(flood)
		f.Print(line)
		if took := time.Since(began); took != 20*time.Millisecond {
			t.Errorf("the child waited %v, want until a key was typed, 20ms", took)
		}
	})
}
