package term_test

import (
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/redact"
	"tether/agent/term"
	"tether/internal/testkit/must"
)

// A panic caused by a terminal's output costs that output, neither the terminal nor other
// terminals.
func TestABugIsSurvived(t *testing.T) {
	for name, trip := range map[string]func(term.Handle){
		"in the scanner": term.Handle.TripScanner, "under the lock": term.Handle.TripRedaction, "where text offsets are from": term.Handle.TripCuts,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var recoveries []term.Recovery
				o := redacted(t, redact.Options{})
				o.Recovered = func(s term.Recovery) { recoveries = append(recoveries, s) }
				h, f, pool := start(t, o, term.Spec{LendTo: []string{"lab"}, Env: secretEnv})
				readers := []*term.Reader{
					reader(t, h, term.ReaderOptions{View: output.ViewRaw}),
					reader(t, hostOf(t, pool, "lab"), term.ReaderOptions{View: output.ViewOutward}),
				}
				prints(f, "before \xff")
				ends := make([]int64, len(readers))
				for i, r := range readers {
					_, ends[i] = readOn(t, r)
				}
				trip(h)
				f.Print("unlucky output")
				time.Sleep(time.Second)
				f.Print("after " + value)
				time.Sleep(time.Second)
				synctest.Wait()
				if len(recoveries) != 1 || recoveries[0].ID != h.ID() || recoveries[0].Bytes != len("unlucky output") || !strings.Contains(string(recoveries[0].Stack), "ingest") ||
					strings.Contains(recoveries[0].Kind, "unlucky") {
					t.Fatalf("told of %+v", recoveries)
				}
				for i, want := range []string{"after " + value, "after " + strings.Repeat("*", len(value))} {
					if got, end := readOn(t, readers[i]); got != want || end <= ends[i] {
						t.Errorf("reader %d sees %q up to %d (before: %d), want %q", i, got, end, ends[i], want)
					}
				}
				if i := h.Info(); i.Lost != int64(len("unlucky output")) || i.Bytes != int64(len("before ?unlucky outputafter "+value)) {
					t.Errorf("lost %d of %d bytes", i.Lost, i.Bytes)
				}
				f.End(3)
				<-h.Done()
				if e := h.Info().Exit; e == nil || e.Code != 3 {
					t.Errorf("exit %+v", e)
				}
			})
		})
	}
}

// The same at the end of the output, and while text is held back.
func TestABugAtTheEndIsSurvived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var recoveries atomic.Int32
		o := redacted(t, redact.Options{})
		o.Recovered = func(term.Recovery) { recoveries.Add(1) }
		h, f, pool := start(t, o, term.Spec{LendTo: []string{"lab"}, Env: secretEnv})
		f.Print("held back: " + value[:4]) // it may go on: a timer decides
		synctest.Wait()
		h.TripRedaction()
		time.Sleep(time.Second)
		if recoveries.Load() != 1 {
			t.Fatalf("%d bugs were told", recoveries.Load())
		}
		f.Print(" and on")
		time.Sleep(time.Second)
		if got := outwardText(t, hostOf(t, pool, "lab"), 0); !strings.HasSuffix(got, " and on") {
			t.Errorf("the host sees %q", got)
		}
		h.TripScanner()
		f.End(4)
		<-h.Done()
		if e := h.Info().Exit; e == nil || e.Code != 4 || recoveries.Load() != 2 {
			t.Errorf("exit %+v, %d bugs were told", e, recoveries.Load())
		}
	})
}

// A daemon that adopts output that caused a panic in the former one panics, too, and
// still adopts the terminal.
func TestABugWhileATerminalIsTakenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(1 << 20)
		pool, _, l := keeping(t, v, term.Options{}, term.Spec{})
		v.print("x") // which is read at once
		synctest.Wait()
		l.cut()
		synctest.Wait()
		_ = pool.Close(t.Context())
		recoveries := 0
		pool = term.NewPool(term.Options{Recovered: func(term.Recovery) { recoveries++ }})
		l, past := v.connect()
		caught := must.Get(pool.AdoptWithABug(l, past))(t)
		synctest.Wait()
		select {
		case <-caught:
		default:
			t.Error("it waits for output that is there no more")
		}
		if recoveries != 1 {
			t.Errorf("%d bugs were told", recoveries)
		}
		l.cut()
		synctest.Wait()
		_ = pool.Close(t.Context())
	})
}

// readOn reads available output behind gaps, and returns its end.
func readOn(t *testing.T, r *term.Reader) (text string, end int64) {
	t.Helper()
	buf := make([]byte, 4096)
	for {
		ev, ok, err := r.TryNext(buf)
		var lagged *term.LaggedError
		switch {
		case errors.As(err, &lagged):
			text = ""
			continue
		case err != nil && err != io.EOF:
			t.Fatal(err)
		case err != nil || !ok:
			return text, end
		case ev.Mark == nil:
			text, end = text+string(ev.Data), ev.Off+int64(len(ev.Data))
		}
	}
}
