package policy_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/agent/config"
	"tether/agent/policy"
	"tether/agent/term"
)

// outcome is what became of a request.
type outcome struct {
	d   policy.Decision
	err error
}

// ask sends a request and returns the channel for its outcome, once it waits.
func ask(ctx context.Context, e *policy.Engine, r policy.Request) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		d, err := e.Admit(ctx, r)
		done <- outcome{d, err}
	}()
	synctest.Wait()
	return done
}

// only returns the one question there is.
func only(t *testing.T, e *policy.Engine) policy.Question {
	t.Helper()
	all, _, _ := e.Questions()
	if len(all) != 1 {
		t.Fatalf("%d questions, want 1: %+v", len(all), all)
	}
	return all[0]
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer policy.Answer
		code   string
		trail  []string
	}{
		{"yes", policy.Answer{Allow: true}, "", []string{"answer allow builtin.code", "decision ask builtin.code"}},
		{"no", policy.Answer{}, "rejected", []string{"answer deny builtin.code", "decision ask builtin.code"}},
		{"yes, for a while", policy.Answer{Allow: true, For: time.Hour}, "",
			[]string{"answer allow builtin.code", "decision ask builtin.code", "grant allow builtin.code"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := engine(t, policy.Options{})
				done := ask(t.Context(), e, asked())
				q := only(t, e)
				if q.Expired || e.Waiting(term.User) != 1 || e.Waiting(agent) != 1 || e.Waiting(term.Agent("b")) != 0 {
					t.Errorf("waiting: %+v", q)
				}
				if _, _, err := e.Answer(q.ID, c.answer); err != nil {
					t.Fatal(err)
				}
				got := <-done
				if codeOf(got.err) != c.code {
					t.Errorf("%+v, want %q", got, c.code)
				}
				if got.d.Rule != "builtin.code" || got.d.Effect == policy.Ask {
					t.Errorf("the decision is %+v", got.d)
				}
				if _, _, err := e.Answer(q.ID, c.answer); !errors.Is(err, policy.ErrNoQuestion) {
					t.Errorf("a second answer: %v", err)
				}
				synctest.Wait()
				have := trail(e)
				slices.Sort(have) // a grant is written by who answers, the answer by who waited
				if d := cmp.Diff(c.trail, have); d != "" {
					t.Errorf("-want +trail:\n%s", d)
				}
			})
		})
	}
}

func TestNobodyAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, policy.Options{})
		began := time.Now()
		done := ask(t.Context(), e, asked())
		q := only(t, e)
		got := <-done
		if took := time.Since(began); took != 45*time.Second || codeOf(got.err) != "unanswered" {
			t.Fatalf("after %s: %+v", took, got)
		}
		if text := got.err.Error(); !strings.Contains(text, "tether approve "+q.ID) || !strings.Contains(text, "45s") {
			t.Errorf("the sentence is %q", text)
		}
		if late := only(t, e); !late.Expired || late.ID != q.ID || e.Waiting(term.User) != 0 {
			t.Errorf("the question is %+v", late)
		}
		if _, g, err := e.Answer(q.ID, policy.Answer{Allow: true}); err != nil || g == nil {
			t.Fatalf("late answer: %v, %v", g, err)
		}
		if got := <-ask(t.Context(), e, asked()); got.err != nil {
			t.Errorf("the next attempt: %v", got.err)
		}
		time.Sleep(10 * time.Minute)
		if _, grants, _ := e.Questions(); len(grants) != 0 {
			t.Errorf("grants after their time: %v", grants)
		}
		if got := <-ask(t.Context(), e, asked()); codeOf(got.err) != "unanswered" {
			t.Errorf("after the grant's time: %+v", got)
		}
		time.Sleep(15 * time.Minute)
		if all, _, _ := e.Questions(); len(all) != 0 {
			t.Errorf("expired questions are kept for ever: %v", all)
		}
	})
}

func TestGrantsCoverNothingElse(t *testing.T) {
	for name, change := range map[string]func(*policy.Request){
		"another agent":     func(r *policy.Request) { r.Actor = term.Agent("b") },
		"another argument":  func(r *policy.Request) { r.Argv = []string{"python3", "-c", "2"} },
		"one more argument": func(r *policy.Request) { r.Argv = append(r.Argv, "x") },
		"another directory": func(r *policy.Request) { r.Cwd = "/" },
		"another door":      func(r *policy.Request) { r.Door = policy.DoorWS },
		"a variable":        func(r *policy.Request) { r.EnvNames = []string{"X"} },
		"a line":            func(r *policy.Request) { r.Argv, r.Line = nil, "python3 -c 1" },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := engine(t, policy.Options{})
				done := ask(t.Context(), e, asked())
				if _, _, err := e.Answer(only(t, e).ID, policy.Answer{Allow: true, For: time.Hour}); err != nil {
					t.Fatal(err)
				}
				if got := <-done; got.err != nil {
					t.Fatal(got.err)
				}
				if got := <-ask(t.Context(), e, asked()); got.err != nil {
					t.Errorf("the same again: %v", got.err)
				}
				other := asked()
				change(&other)
				if got := <-ask(t.Context(), e, other); codeOf(got.err) != "unanswered" {
					t.Errorf("%+v passed: %+v", other, got)
				}
			})
		})
	}
}

// An approval ends by the clock that is there first: one of them stands still while the machine sleeps.
func TestAGrantEndsInSleep(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		name      string
		now, wall time.Time
		want      bool
	}{
		{"at once", now, now, false},
		{"after a night's sleep", now, now.Add(8 * time.Hour), true},
		{"the wall clock was set back", now.Add(time.Hour), now.Add(-time.Hour), true},
	} {
		if got := policy.Over(now.Add(time.Hour), c.now, c.wall); got != c.want {
			t.Errorf("%s: over %t, want %t", c.name, got, c.want)
		}
	}
}

func TestRevoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, policy.Options{})
		done := ask(t.Context(), e, asked())
		_, g, err := e.Answer(only(t, e).ID, policy.Answer{Allow: true, For: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		<-done
		if _, err := e.Revoke(g.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Revoke(g.ID); !errors.Is(err, policy.ErrNoQuestion) {
			t.Errorf("twice: %v", err)
		}
		if got := <-ask(t.Context(), e, asked()); codeOf(got.err) != "unanswered" {
			t.Errorf("after it was revoked: %+v", got)
		}
	})
}

// Who asked may vanish: then nobody need answer, and no place is taken.
func TestWhoAskedIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, settings(func(c *config.Policy) { c.Limits.SpawnsPerMinute = 1 }))
		ctx, cancel := context.WithCancelCause(t.Context())
		done := ask(ctx, e, asked())
		id := only(t, e).ID
		gone := errors.New("gone")
		cancel(gone)
		if got := <-done; !errors.Is(got.err, gone) {
			t.Errorf("%+v", got)
		}
		if all, _, _ := e.Questions(); len(all) != 0 {
			t.Errorf("still there: %v", all)
		}
		if _, _, err := e.Answer(id, policy.Answer{Allow: true}); !errors.Is(err, policy.ErrNoQuestion) {
			t.Errorf("answer: %v", err)
		}
		if _, err := e.Admit(t.Context(), harmless()); err != nil {
			t.Errorf("the start that did not come about was counted: %v", err)
		}
		if d := cmp.Diff([]string{"decision ask builtin.code", "answer deny builtin.code", "decision allow default"}, trail(e)); d != "" {
			t.Errorf("-want +trail:\n%s", d)
		}
	})
}

func TestTooManyQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, settings(func(c *config.Policy) { c.Limits.SpawnsPerMinute = 100 }))
		for range 3 {
			ask(t.Context(), e, asked())
		}
		if _, err := e.Admit(t.Context(), asked()); codeOf(err) != "too_many_asks" {
			t.Errorf("a fourth question: %v", err)
		}
		other := asked()
		other.Actor = term.Agent("b")
		ask(t.Context(), e, other)
		if n := e.Waiting(term.User); n != 4 {
			t.Errorf("%d wait, want 4: another agent has questions of its own", n)
		}
		time.Sleep(time.Minute)
	})
}

// One answer for a while answers all who ask the same.
func TestOneGrantForMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, policy.Options{})
		first, second := ask(t.Context(), e, asked()), ask(t.Context(), e, asked())
		all, _, version := e.Questions()
		if _, _, err := e.Answer(all[1].ID, policy.Answer{Allow: true, For: time.Minute}); err != nil {
			t.Fatal(err)
		}
		for _, done := range []<-chan outcome{first, second} {
			if got := <-done; got.err != nil {
				t.Error(got.err)
			}
		}
		if now, err := e.Changed(t.Context(), version); err != nil || now == version {
			t.Errorf("changed: %d, %v", now, err)
		}
	})
}

func TestChangedWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, policy.Options{})
		_, _, version := e.Questions()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.Changed(ctx, version); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without a change: %v", err)
		}
		go func() { _, _ = e.Admit(t.Context(), asked()) }()
		if now, err := e.Changed(t.Context(), version); err != nil || now == version {
			t.Errorf("with one: %d, %v", now, err)
		}
		time.Sleep(time.Minute)
	})
}

func TestAnswersOutOfRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, policy.Options{})
		ask(t.Context(), e, asked())
		id := only(t, e).ID
		for _, long := range []time.Duration{-1, policy.MaxGrant + 1} {
			if _, _, err := e.Answer(id, policy.Answer{Allow: true, For: long}); !errors.Is(err, policy.ErrTooLong) {
				t.Errorf("for %s: %v", long, err)
			}
		}
		for _, wrong := range []string{"", "q-", "g-x", id + "x"} {
			if _, _, err := e.Answer(wrong, policy.Answer{Allow: true}); !errors.Is(err, policy.ErrNoQuestion) {
				t.Errorf("answer %q: %v", wrong, err)
			}
		}
		time.Sleep(time.Minute)
	})
}

// What was approved at the door needs no question; what is denied stays so.
func TestApprovedAtTheDoor(t *testing.T) {
	e := engine(t, policy.Options{})
	r := asked()
	r.Approved = "editor"
	if d, err := e.Admit(t.Context(), r); err != nil || d.Effect != policy.Allow || !strings.Contains(d.Reason, "editor") {
		t.Errorf("%+v, %v", d, err)
	}
	r.Argv = []string{"rm", "x"}
	if _, err := e.Admit(t.Context(), r); codeOf(err) != "blocked" {
		t.Errorf("rm: %v", err)
	}
}
