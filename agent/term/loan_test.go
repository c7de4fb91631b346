package term_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/output"
	"tether/agent/term"
	"tether/internal/testkit/must"
)

// A lending with an end ends then and not before, and the host has nothing of it
// afterwards.
func TestLoanEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var acts []term.Act
		h, f, pool := start(t, term.Options{Observe: func(a term.Act) { acts = append(acts, a) }}, term.Spec{})
		must.Do(t, h.LendUntil("lab", time.Now().Add(time.Hour)))
		seen := must.Get(pool.As(term.Host("lab")).Find(string(h.ID())))(t)
		r := reader(t, seen, output.ReaderOptions{})
		time.Sleep(time.Hour - time.Second)
		prints(f, "public")
		if got := events(t, r); len(got) != 1 || got[0].Data != "public" {
			t.Errorf("a second before the end: %v", got)
		}
		time.Sleep(2 * time.Second)
		if i := h.Info(); len(i.LentTo)+len(i.Loans) != 0 {
			t.Errorf("after the end it is lent: %+v", i.Loans)
		}
		if _, err := seen.Reader(output.ReaderOptions{}); !errors.Is(err, term.ErrNotFound) {
			t.Errorf("after the end the host reads: %v", err)
		}
		if n := len(acts); n != 2 || acts[1].Kind != term.ActUnlend || acts[1].Host != "lab" || acts[1].Detail == "" {
			t.Errorf("acts %+v, want the lending and its end", acts)
		}
	})
}

// Lending again moves the end, or takes it away; since when stays.
func TestLoanGetsAnotherEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, _ := start(t, term.Options{}, term.Spec{LendTo: []string{"lab"}})
		since := h.Info().Loans[0].Since
		time.Sleep(time.Minute)
		for _, until := range []time.Time{time.Now().Add(time.Minute), time.Now().Add(time.Hour), {}} {
			must.Do(t, h.LendUntil("lab", until))
			if l := h.Info().Loans; len(l) != 1 || !l[0].Until.Equal(until) || !l[0].Since.Equal(since) {
				t.Errorf("%+v, want an end at %v and since %v", l, until, since)
			}
			time.Sleep(30 * time.Second)
		}
		time.Sleep(48 * time.Hour)
		if !h.Info().LentToHost("lab") {
			t.Error("a lending without an end has ended")
		}
		must.Do(t, h.LendUntil("lab", time.Now()))
		synctest.Wait()
		if h.Info().LentToHost("lab") {
			t.Error("it is lent after an end that has passed")
		}
	})
}

// The next daemon knows the beginning and the end of a loan, and does not lend a terminal
// whose loan has ended without a daemon.
func TestLoansOutliveTheDaemon(t *testing.T) {
	for _, c := range []struct {
		name  string
		away  time.Duration
		lent  int
		ended []string // texts for the host whose loan is over
	}{{"in time", time.Minute, 2, nil}, {"too late", 2 * time.Hour, 1, []string{"its URI"}}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v := newVault(1 << 20)
				pool, h, l := keeping(t, v, term.Options{}, term.Spec{LendTo: []string{"lab"}, Door: "cli"})
				time.Sleep(time.Minute)
				must.Do(t, h.LendUntil("short", time.Now().Add(time.Hour)))
				short, err := pool.As(term.Host("short")).Terminal(h.ID())
				if err == nil {
					err = short.SaveLinkState(t.Context(), "its URI")
				}
				must.Do(t, err)
				before := h.Info()
				l.leave(pool)
				time.Sleep(c.away)
				for range 2 { // the first of these daemons does not reach the host
					l.leave(pool)
					pool, h, l = adopting(t, v, term.Options{})
				}
				if got := pool.As(term.Host("short")).Ended(); !slices.Equal(got, c.ended) {
					t.Errorf("ended: %q, want %q", got, c.ended)
				}
				if got := pool.As(term.Host("short")).Ended(); len(got) > 0 {
					t.Errorf("told again: %q", got)
				}
				after := h.Info()
				if len(after.Loans) != c.lent || after.Door != "cli" {
					t.Fatalf("lent %+v through %q, want %d of %+v", after.Loans, after.Door, c.lent, before.Loans)
				}
				for i, loan := range after.Loans {
					if was := before.Loans[i]; !loan.Since.Equal(was.Since) || !loan.Until.Equal(was.Until) {
						t.Errorf("%+v, want %+v", loan, was)
					}
				}
				time.Sleep(time.Hour)
				if got := h.Info().LentTo; len(got) != 1 || got[0] != "lab" {
					t.Errorf("an hour later it is lent to %v", got)
				}
				l.leave(pool)
			})
		})
	}
}

// A terminal that a rule keeps from a host is never lent there: not at the start, not
// later, not by the next daemon.
func TestMayLend(t *testing.T) {
	errRule := errors.New("rule")
	options := term.Options{MayLend: func(i term.Info, host string) error {
		if host == "lab" && i.Door == "mcp" {
			return errRule
		}
		return nil
	}}
	synctest.Test(t, func(t *testing.T) {
		h, _, pool := start(t, options, term.Spec{Door: "mcp", LendTo: []string{"other"}})
		if err := h.Lend("lab"); !errors.Is(err, errRule) || h.Info().LentToHost("lab") {
			t.Errorf("lend: %v, lent to %v", err, h.Info().LentTo)
		}
		if _, err := pool.As(term.User).Spawn(term.Spec{Command: []string{"x"}, Cwd: "/", Door: "mcp", LendTo: []string{"lab"}}); err == nil {
			t.Error("it was started for that host")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		v := newVault(1 << 20)
		pool, _, l := keeping(t, v, term.Options{}, term.Spec{LendTo: []string{"lab", "other"}, Door: "mcp"})
		l.leave(pool)
		pool, h, l := adopting(t, v, options)
		if got := h.Info().LentTo; len(got) != 1 || got[0] != "other" {
			t.Errorf("the next daemon lends to %v", got)
		}
		l.leave(pool)
	})
}

// A lent shell that goes where a rule keeps it from a host is withdrawn from that host
// alone, once, and does not come back by itself.
func TestAShellThatGoesAstray(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		acts := make(chan term.Act, 10)
		h, f, _ := start(t, term.Options{
			MayLend: func(i term.Info, host string) error {
				if host == "lab" && i.Cwd == "/private" {
					return errors.New("rule")
				}
				return nil
			},
			Observe: func(a term.Act) { acts <- a },
		}, term.Spec{Nonce: "n0", LendTo: []string{"lab", "desk"}})
		goes := func(dir, nonce string) {
			prints(f, "\x1b]633;P;Cwd="+dir+nonce+"\a")
		}
		goes("/work", ";n0")
		goes("/private", "") // which anything may print
		if got := h.Info().LentTo; len(got) != 2 || len(acts) != 0 {
			t.Fatalf("elsewhere it is lent to %v, with %d acts", got, len(acts))
		}
		goes("/private", ";n0")
		goes("/private/../private", ";n0")
		goes("/work", ";n0")
		if got := h.Info().LentTo; len(got) != 1 || got[0] != "desk" {
			t.Errorf("it is lent to %v, want desk alone", got)
		}
		if len(acts) != 1 {
			t.Fatalf("%d acts, want one", len(acts))
		}
		if a := <-acts; a.Kind != term.ActUnlend || a.Host != "lab" || a.Detail == "" || a.Err != nil {
			t.Errorf("the act is %+v", a)
		}
	})
}
