package term_test

import (
	"errors"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// pacedWire is a wire of a holder that has the child wait itself.
type pacedWire struct {
	*wire
	until atomic.Int64
}

const unbounded = math.MaxInt64

func (w *pacedWire) Paces() bool           { return true }
func (w *pacedWire) Until(off int64) error { w.until.Store(off); return nil }

// paced is a terminal with the policy lag in a holder that paces.
func paced(t *testing.T, limit int) (*term.Pool, term.Handle, *vault, *pacedWire) {
	t.Helper()
	v := newVault(8 * limit)
	w := &pacedWire{}
	w.until.Store(unbounded)
	o := term.Options{LogBytes: limit}
	o.Start = func(term.ID, pty.Command) (term.PTY, error) { w.wire, _ = v.connect(); return w, nil }
	pool := term.NewPool(o)
	h := must.Get(pool.As(term.User).Spawn(term.Spec{Command: []string{"child"}, Cwd: testkit.Abs("/"), ID: "pty-held", OnSlow: term.Lag}))(t)
	return pool, h, v, w
}

// The holder learns how far the child may go for readers that may slow it a little; the
// daemon has all output at once.
func TestTheHolderGetsTheChildsBudget(t *testing.T) {
	const limit = 64 << 10
	synctest.Test(t, func(t *testing.T) {
		pool, h, v, w := paced(t, limit)
		defer func() { pool.Close(t.Context()); v.kill() }()
		r := reader(t, h, output.ReaderOptions{View: output.ViewText, Hold: true})
		told := func() int64 { synctest.Wait(); return w.until.Load() }

		v.print(strings.Repeat(line, 8))
		if got := told(); got != unbounded {
			t.Errorf("until %d for a reader that is 8 KiB behind, want no bound", got)
		}
		v.print(strings.Repeat(line, 24))
		if got := told(); got > limit || got < limit*3/4 {
			t.Errorf("until %d for a reader that is 32 KiB behind at 0, want a little less than %d", got, limit)
		}
		began := time.Now()
		v.print(strings.Repeat(line, 60)) // a holder that does not wait
		synctest.Wait()
		if got := h.Info().Bytes; got != 92<<10 || time.Since(began) != 0 {
			t.Errorf("the daemon has %d bytes after %v, want all of 92 KiB at once", got, time.Since(began))
		}
		if got := told(); got > 92<<10 {
			t.Errorf("until %d although the reader has lost its place", got)
		}

		readTo(t, r, 80<<10)
		if got := told(); got != unbounded {
			t.Errorf("until %d for a reader that has caught up, want no bound", got)
		}
		v.print(strings.Repeat(line, 40))
		if got := told(); got == unbounded {
			t.Error("no bound for a reader that is far behind again")
		}
		must.Do(t, h.Write(t.Context(), []byte("x")))
		if got := told(); got != unbounded {
			t.Errorf("until %d while somebody types, want no bound", got)
		}
		v.print(line)
		if got := told(); got != unbounded {
			t.Errorf("until %d while somebody types, want no bound", got)
		}
		time.Sleep(lagQuiet)
		v.print(line)
		if got := told(); got == unbounded {
			t.Error("no bound although nobody types any more")
		}
		r.Close()
		if got := told(); got != unbounded {
			t.Errorf("until %d after the reader has gone, want no bound", got)
		}
	})
}

// readTo reads on to an offset at least, and returns how many bytes were lost.
func readTo(t *testing.T, r *output.Reader, off int64) (lost int64) {
	t.Helper()
	for buf := make([]byte, 4096); r.Offset() < off; {
		_, ok, err := r.TryNext(buf)
		lagged := (*output.LaggedError)(nil)
		if errors.As(err, &lagged) {
			lost += lagged.Lost
		} else if err != nil || !ok {
			t.Fatalf("at %d: %v", r.Offset(), err)
		}
	}
	return lost
}
