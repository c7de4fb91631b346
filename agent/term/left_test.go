package term_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// A daemon that makes way does not wait for a reader that holds the child: nothing is
// lost with the terminal, which the next daemon reads again.
func TestLeavingWaitsForNoReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const logged = 64 << 10
		v := newVault(1 << 20)
		pool, h, _ := keeping(t, v, term.Options{LogBytes: logged, Stall: time.Hour}, term.Spec{OnSlow: term.Hold})
		reader(t, h, output.ReaderOptions{View: output.ViewScreen, Hold: true})
		v.print(strings.Repeat("x", 4*logged))
		synctest.Wait()
		if i := h.Info(); i.Bytes >= 4*logged {
			t.Fatalf("the reader does not hold the child: %d bytes were read", i.Bytes)
		}
		began := time.Now()
		if kept, err := pool.Detach(t.Context()); kept != 1 || err != nil {
			t.Errorf("%d were left, %v", kept, err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("it took %v", took)
		}
	})
}

// A reader that opens a terminal at the moment in which its holder gets out of reach does
// not wait for output for ever.
func TestReaderOfALeftTerminalEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(1 << 20)
		pool, h, l := keeping(t, v, term.Options{}, term.Spec{})
		l.cut()
		synctest.Wait()
		r := reader(t, h, output.ReaderOptions{Tail: -1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if _, err := r.Next(ctx, make([]byte, 100)); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("Next: %v, want io.ErrClosedPipe", err)
		}
		pool.Close(context.Background())
	})
}

// slowToKeep is a wire whose holder takes the meta only when the gate is open.
type slowToKeep struct {
	*wire
	gate chan struct{}
}

func (g slowToKeep) SetMeta(p []byte) error {
	<-g.gate
	return g.wire.SetMeta(p)
}

// A record that a door could not confirm stays unconfirmed when it asks again: the holder
// may still not have it.
func TestRememberIsCertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newVault(1 << 20)
		gate := make(chan struct{}, 100)
		gate <- struct{}{} // for the start
		pool := term.NewPool(term.Options{Start: func(term.ID, pty.Command) (term.PTY, error) {
			l, _ := v.connect()
			return slowToKeep{l, gate}, nil
		}})
		h := must.Get(pool.As(term.User).Spawn(term.Spec{Command: []string{"child"}, Cwd: testkit.Abs("/"), LendTo: []string{"a"}}))(t)
		host := must.Get(pool.As(term.Host("a")).Find(string(h.ID())))(t)
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if err := host.SaveLinkState(ctx, "uri"); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Remember, while the holder takes nothing: %v", err)
			}
			cancel()
		}
		close(gate)
		check.OK(t, host.SaveLinkState(t.Context(), "uri"))
		if meta, _, _, _ := v.state(); !strings.Contains(meta, `"uri"`) {
			t.Errorf("the holder has %s", meta)
		}
		pool.Close(context.Background())
	})
}
