package term_test

import (
	"context"
	"errors"
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
	"tether/vocab"
)

// background starts an agent's terminal that may be idle for after.
func background(t *testing.T, after time.Duration) (term.Handle, *testkit.Child, *term.Pool) {
	t.Helper()
	f := testkit.NewChild()
	pool := term.NewPool(term.Options{Start: func(term.ID, pty.Command) (term.PTY, error) { return f, nil }})
	h := must.Get(pool.As(term.Agent("a")).Spawn(term.Spec{Command: []string{"fake"}, Cwd: testkit.Abs("/"), IdleTimeout: after}))(t)
	t.Cleanup(func() {
		check.OK(t, pool.Close(context.Background()))
	})
	return h, f, pool
}

func TestIdleTimeout(t *testing.T) {
	const limit = 5 * time.Minute
	for _, c := range []struct {
		name string
		act  func(h term.Handle, f *testkit.Child) // at 4 minutes
		want time.Duration                         // when it is killed; 0: never
	}{
		{"nothing happens", func(term.Handle, *testkit.Child) {}, limit},
		{"output", func(_ term.Handle, f *testkit.Child) { f.Print("x") }, 9 * time.Minute},
		{"input", func(h term.Handle, _ *testkit.Child) { h.Write(context.Background(), []byte("x")) }, 9 * time.Minute},
		{"promotion", func(h term.Handle, _ *testkit.Child) { h.Promote() }, 0},
		{"a look", func(h term.Handle, _ *testkit.Child) { h.Info(); h.Commands() }, limit},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, f, _ := background(t, limit)
				began := time.Now()
				time.Sleep(4 * time.Minute)
				c.act(h, f)
				select {
				case <-h.Done():
					e := h.Info().Exit
					if got := time.Since(began); got != c.want || e.Reason != vocab.ExitIdle || !f.Killed() {
						t.Errorf("ended after %v with %+v, want after %v", got, e, c.want)
					}
				case <-time.After(24 * time.Hour):
					if c.want != 0 {
						t.Errorf("still runs, want its end after %v", c.want)
					}
				}
			})
		})
	}
}

// A terminal with a time limit is ended whatever it does; a promoted one continues, and
// so does the person's.
func TestTimeLimit(t *testing.T) {
	const limit = 5 * time.Minute
	for _, c := range []struct {
		name    string
		actor   term.Actor
		promote bool
		want    time.Duration // 0: never
	}{
		{"an agent's", term.Agent("a"), false, limit}, {"promoted", term.Agent("a"), true, 0}, {"the person's", term.User, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := testkit.NewChild()
				pool := term.NewPool(term.Options{Start: func(term.ID, pty.Command) (term.PTY, error) { return f, nil }})
				defer pool.Close(context.Background())
				h := must.Get(pool.As(c.actor).Spawn(term.Spec{Command: []string{"fake"}, Cwd: testkit.Abs("/"), TimeLimit: limit}))(t)
				began := time.Now()
				for range 4 {
					time.Sleep(time.Minute)
					f.Print("x")
				}
				if c.promote {
					must.Do(t, h.Promote())
				}
				select {
				case <-h.Done():
					if e := h.Info().Exit; time.Since(began) != c.want || e.Reason != vocab.ExitIdle {
						t.Errorf("ended after %s with %+v, want after %s", time.Since(began), e, c.want)
					}
				case <-time.After(time.Hour):
					if c.want != 0 {
						t.Error("it still runs")
					}
				}
			})
		})
	}
}

func TestPersonsTerminalsAreNeverIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, _ := start(t, term.Options{}, term.Spec{IdleTimeout: time.Minute})
		time.Sleep(time.Hour)
		if h.Info().Exit != nil {
			t.Error("killed")
		}
	})
}

func TestPromoteTransfersOwnership(t *testing.T) {
	h, f, pool := background(t, 0)
	if i := h.Info(); i.Visible || i.Owner != term.Agent("a") {
		t.Fatalf("before: %+v", i)
	}
	before, _ := pool.Changed(t.Context(), 0)
	must.Do(t, h.Promote())
	if now, _ := pool.Changed(t.Context(), 0); now == before {
		t.Error("watchers were not told")
	}
	if i := h.Info(); !i.Visible || !i.Promoted || i.Owner != term.User {
		t.Errorf("after: %+v", i)
	}
	var denied *term.DeniedError
	for name, err := range map[string]error{
		"kill": h.Kill(t.Context()), "type": h.Write(t.Context(), []byte("x")), "signal": h.Signal("INT"), "promote": h.Promote(),
	} {
		if !errors.As(err, &denied) {
			t.Errorf("%s by the agent that had it: %v, want a refusal", name, err)
		}
	}
	if f.Killed() {
		t.Error("killed all the same")
	}
	if own, err := pool.As(term.User).Find(string(h.ID())); err != nil || own.Promote() != nil {
		t.Errorf("promoting the person's terminal by the person: %v, %v", own.Promote(), err)
	}
}

// An agent at a host that stops reading is not a lost link: nothing waits for its return.
func TestAnAgentAtAHostIsNotAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := testkit.NewChild()
		pool := term.NewPool(term.Options{LogBytes: 64 << 10, Start: func(term.ID, pty.Command) (term.PTY, error) { return f, nil }})
		h := must.Get(pool.As(term.AgentAt("lab", "s")).Spawn(term.Spec{Command: []string{"fake"}, Cwd: testkit.Abs("/"), LendTo: []string{"lab"}}))(t)
		reader(t, h, output.ReaderOptions{View: output.ViewText, Hold: true}).Close()
		began := time.Now()
		for range 10 {
			f.Print(strings.Repeat("x", 16<<10))
		}
		synctest.Wait()
		if took := time.Since(began); took > 0 {
			t.Errorf("the child was held for %v", took)
		}
		_ = pool.Close(t.Context())
	})
}

// Input of an agent that still waits when its terminal becomes the person's is not typed.
func TestAPromotionEndsTheAgentsInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gated{Child: testkit.NewChild(), writes: make(chan struct{})}
		pool := term.NewPool(term.Options{Start: func(term.ID, pty.Command) (term.PTY, error) { return g, nil }})
		h := must.Get(pool.As(term.Agent("a")).Spawn(term.Spec{Command: []string{"fake"}, Cwd: testkit.Abs("/")}))(t)
		written := make(chan error, 1)
		go func() { written <- h.Write(t.Context(), append(make([]byte, 5<<20), "rm -r ~"...)) }()
		synctest.Wait() // the child takes nothing yet
		must.Do(t, h.Promote())
		close(g.writes)
		synctest.Wait()
		var denied *term.DeniedError
		if err := <-written; !errors.As(err, &denied) {
			t.Errorf("Write = %v, want a refusal", err)
		}
		if got := g.Typed(); strings.HasSuffix(got, "rm -r ~") || len(got) > 2<<20 {
			t.Errorf("%d bytes were typed, the end of them after the promotion", len(got))
		}
		_ = pool.Close(t.Context())
	})
}

func TestPromoteAndKillExclude(t *testing.T) {
	for range 50 {
		h, _, _ := background(t, 0)
		killed := make(chan error, 1)
		go func() { killed <- h.Kill(context.Background()) }()
		promoted := h.Promote()
		ended := <-killed
		var denied *term.DeniedError
		switch {
		case promoted == nil && errors.As(ended, &denied): // was faster
		case (promoted == nil || errors.Is(promoted, term.ErrEnding)) && ended == nil && h.Info().Exit != nil:
			if promoted == nil && h.Info().Exit.Reason != vocab.ExitKilled {
				t.Errorf("exit %+v", h.Info().Exit)
			}
		default:
			t.Fatalf("promote %v, kill %v", promoted, ended)
		}
	}
}

func TestExitReasons(t *testing.T) {
	h, f, _ := background(t, 0)
	f.End(3)
	<-h.Done()
	if err := h.Kill(t.Context()); err != nil { // idempotent, and changes nothing
		t.Error(err)
	}
	if e := h.Info().Exit; e.Reason != vocab.ExitItself || e.Code != 3 {
		t.Errorf("by itself: %+v", e)
	}
	if err := h.Signal("TERM"); !errors.Is(err, term.ErrExited) {
		t.Errorf("signal after the end: %v", err)
	}
	h, _, _ = background(t, 0)
	if err := h.Signal("TERM"); !errors.Is(err, term.ErrNoSignals) {
		t.Errorf("signal to a pty without: %v", err)
	}
	must.Do(t, h.Kill(t.Context()))
	if e := h.Info().Exit; e.Reason != vocab.ExitKilled {
		t.Errorf("killed: %+v", e)
	}
}
