package policy_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/agent/config"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// outcome is the result of a request.
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
		if took := time.Since(began); took != 5*time.Minute || codeOf(got.err) != "unanswered" {
			t.Fatalf("after %s: %+v", took, got)
		}
		if text := got.err.Error(); !strings.Contains(text, "tether approve "+q.ID) || !strings.Contains(text, "5m") {
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
		"a variable":        func(r *policy.Request) { r.Env = []string{"X=1"} },
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

// An approval ends by the clock that is there first: one of them stands still while the
// machine sleeps.
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
		must.Do(t, err)
		<-done
		must.Get(e.Revoke(g.ID))(t)
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

// A request that was approved at the door needs no question; a denied one stays denied.
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

// again is a request that is repeated when its answer takes long.
func again() policy.Request {
	r := asked()
	r.Again = true
	return r
}

// A tool call is told to call again before its client gives it up; the question stays,
// and the same call takes the answer.
func TestCallAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		act   func(t *testing.T, e *policy.Engine, id string)
		code  string // of the repeated call
		waits time.Duration
	}{
		{"answered yes meanwhile", func(t *testing.T, e *policy.Engine, id string) {
			if _, g, err := e.Answer(id, policy.Answer{Allow: true}); err != nil || g != nil {
				t.Errorf("%v, %v", g, err)
			}
		}, "", 0},
		{"answered no meanwhile", func(t *testing.T, e *policy.Engine, id string) {
			if _, _, err := e.Answer(id, policy.Answer{}); err != nil {
				t.Error(err)
			}
		}, "rejected", 0},
		{"approved for a while", func(t *testing.T, e *policy.Engine, id string) {
			if _, g, err := e.Answer(id, policy.Answer{Allow: true, For: time.Hour}); err != nil || g == nil {
				t.Errorf("%v, %v", g, err)
			}
		}, "", 0},
		{"answered during the next call", func(t *testing.T, e *policy.Engine, id string) {
			time.AfterFunc(10*time.Second, func() { _, _, _ = e.Answer(id, policy.Answer{Allow: true}) })
		}, "", 10 * time.Second},
		{"not answered", func(*testing.T, *policy.Engine, string) {}, "waiting", 45 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := engine(t, policy.Options{})
				began := time.Now()
				first := <-ask(t.Context(), e, again())
				if codeOf(first.err) != "waiting" || !strings.HasPrefix(first.err.Error(), "waiting for the user; call again") || time.Since(began) != 45*time.Second {
					t.Fatalf("after %s: %+v", time.Since(began), first)
				}
				q := only(t, e)
				if q.Expired || e.Waiting(agent) != 1 {
					t.Fatalf("the question is %+v", q)
				}
				c.act(t, e, q.ID)
				began = time.Now()
				if got := <-ask(t.Context(), e, again()); codeOf(got.err) != c.code || time.Since(began) != c.waits {
					t.Errorf("after %s: %+v, want %q after %s", time.Since(began), got, c.code, c.waits)
				}
				if all, _, _ := e.Questions(); len(all) > 1 || len(all) == 1 && all[0].ID != q.ID {
					t.Errorf("it was asked twice: %+v", all)
				}
				if c.name == "answered yes meanwhile" { // once
					if got := <-ask(t.Context(), e, again()); codeOf(got.err) != "waiting" {
						t.Errorf("a third call: %+v", got)
					}
				}
			})
		})
	}
}

// The question lapses although nobody waits; so does an answer that nobody takes.
func TestNobodyCallsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, policy.Options{})
		<-ask(t.Context(), e, again())
		time.Sleep(5 * time.Minute)
		if q := only(t, e); !q.Expired || e.Waiting(term.User) != 0 {
			t.Errorf("%+v", q)
		}
		if have := trail(e); have[len(have)-1] != "answer deny builtin.code" {
			t.Errorf("the trail is %q", have)
		}
		other := again()
		other.Argv = []string{"python3", "-c", "2"}
		<-ask(t.Context(), e, other)
		all, _, _ := e.Questions()
		if _, _, err := e.Answer(all[0].ID, policy.Answer{Allow: true}); err != nil {
			t.Fatal(err)
		}
		if have := trail(e); have[len(have)-1] != "answer allow builtin.code" {
			t.Errorf("the trail is %q", have)
		}
		time.Sleep(10 * time.Minute)
		if got := <-ask(t.Context(), e, other); codeOf(got.err) != "waiting" {
			t.Errorf("an answer is taken after its time: %+v", got)
		}
	})
}

// A call in another agent's name does not take the answer.
func TestAnswersAreForWhoAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, policy.Options{})
		<-ask(t.Context(), e, again())
		if _, _, err := e.Answer(only(t, e).ID, policy.Answer{Allow: true}); err != nil {
			t.Fatal(err)
		}
		other := again()
		other.Actor = term.Agent("b")
		if got := <-ask(t.Context(), e, other); codeOf(got.err) != "waiting" {
			t.Errorf("another agent: %+v", got)
		}
	})
}

// Questions that wait use up neither the rate nor the places; an approval that finds no
// place is kept.
func TestQuestionsTakeNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p := engine(t, settings(func(c *config.Policy) { c.Limits.Background = 1 })), pool(t)
		for range 3 {
			r := again()
			r.Argv = append(r.Argv, string(rune('a'+e.Waiting(agent))))
			go func() { _, _ = spawn(t.Context(), e, p, r) }()
			synctest.Wait()
		}
		h, err := spawn(t.Context(), e, p, harmless())
		if err != nil {
			t.Fatalf("beside three questions: %v", err)
		}
		all, _, _ := e.Questions()
		if _, _, err := e.Answer(all[0].ID, policy.Answer{Allow: true}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if have := trail(e); have[len(have)-1] != "decision deny limits.places" {
			t.Errorf("the trail is %q", have)
		}
		must.Do(t, h.Kill(t.Context()))
		if _, err := spawn(t.Context(), e, p, all[0].Request); err != nil {
			t.Errorf("once there is a place: %v", err)
		}
		time.Sleep(10 * time.Minute)
	})
}

// An approval also covers the values of the variables and the contents of the scripts:
// both are shown if they decide which code runs, and if anything has changed before the
// start, the person is asked again.
func TestApprovalsBindScriptsAndSettings(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	mask := func(text string, env []string) string {
		if strings.HasPrefix(strings.Join(env, ""), "API_TOKEN=") {
			return "masked"
		}
		return text
	}
	for _, c := range []struct {
		name           string
		change         func(*policy.Request)
		edit           string // of the script, before the answer
		settings, path string // shown by the question
		again          bool
	}{
		{"nothing changes", func(r *policy.Request) { r.Argv = []string{"sh", "x.sh"} }, "", "", "x.sh", false},
		{"a script of a shell", func(r *policy.Request) { r.Argv = []string{"sh", "x.sh"} }, "x.sh", "", "x.sh", true},
		{"a program by its path", func(r *policy.Request) { r.Argv, r.Env = []string{"./x.sh"}, []string{"LD_PRELOAD=y"} }, "x.sh", "LD_PRELOAD=y", "x.sh", true},
		{"a script of an interpreter", func(r *policy.Request) { r.Argv, r.Env = []string{"python3", "-u", "x.py"}, []string{"PATH=/p"} }, "x.py", "PATH=/p", "x.py", true},
		{"in a line, in another directory", func(r *policy.Request) { r.Argv, r.Line = nil, "cd sub && . ./y.sh" }, "sub/y.sh", "", "sub/y.sh", true},
		{"another file", func(r *policy.Request) { r.Argv = []string{"sh", "x.sh"} }, "x.py", "", "x.sh", false},
		{"values", func(r *policy.Request) {
			r.Argv, r.Env = []string{"git", "fetch"}, []string{"GIT_SSH_COMMAND=ssh -i x", "API_TOKEN=canary", "CI=1"}
		}, "", "GIT_SSH_COMMAND=ssh -i x\nAPI_TOKEN=masked\nCI=1", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			must.Do(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o700))
			for _, name := range []string{"x.sh", "x.py", "sub/y.sh"} {
				write(name, "true")
			}
			o := settings(nil)
			o.Mask = mask
			e, p := engine(t, o), pool(t)
			r := asked()
			r.Cwd = dir
			c.change(&r)
			started := make(chan error, 1)
			begin := func() {
				go func() {
					_, err := spawn(t.Context(), e, p, r)
					started <- err
				}()
			}
			next := func(but string) policy.Question {
				t.Helper()
				var q policy.Question
				testkit.Eventually(t, testkit.Patience, "a question", func() bool {
					all, _, _ := e.Questions()
					if len(all) == 1 {
						q = all[0]
					}
					return len(all) == 1 && q.ID != but
				})
				return q
			}
			answer := func(q policy.Question, a policy.Answer) {
				t.Helper()
				if _, _, err := e.Answer(q.ID, a); err != nil {
					t.Fatal(err)
				}
			}
			begin()
			q := next("")
			if got := strings.Join(q.Request.Env, "\n"); got != c.settings {
				t.Errorf("it shows the settings %q, want %q", got, c.settings)
			}
			if c.path != "" && (len(q.Scripts) != 1 || q.Scripts[0].Path != filepath.Join(dir, c.path) || q.Scripts[0].Sum == "" || q.Scripts[0].Size != 4) {
				t.Errorf("it shows the scripts %+v, want %s", q.Scripts, c.path)
			}
			if c.edit != "" {
				write(c.edit, "evil")
			}
			answer(q, policy.Answer{Allow: true, For: time.Hour})
			if c.again {
				q = next(q.ID)
				if !strings.HasPrefix(q.Why.Reason, "the script has changed since it was approved: ") {
					t.Errorf("it is asked anew because %q", q.Why.Reason)
				}
				answer(q, policy.Answer{Allow: true, For: time.Hour})
			}
			must.Do(t, <-started)
			begin() // the grant stands
			must.Do(t, <-started)
			switch {
			case c.path != "": // it does not stand for another script
				write(c.path, "else")
			default: // nor for another value
				r.Env = slices.Clone(r.Env)
				r.Env[1] = "API_TOKEN=other"
			}
			begin()
			answer(next(""), policy.Answer{})
			if err := <-started; codeOf(err) != string(policy.CodeRejected) {
				t.Errorf("what the grant is not for: %v", err)
			}
			for _, record := range e.Recent() {
				if text := fmt.Sprintf("%+v", record); strings.Contains(text, "canary") || strings.Contains(text, "ssh -i") {
					t.Errorf("the audit log has a value: %s", text)
				}
			}
		})
	}
}
