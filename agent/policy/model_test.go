package policy_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/policy"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// model is the expected behaviour of the limits, as simply as possible.
type model struct {
	starts []time.Time
	places int
}

func (m *model) expect(now time.Time) string {
	m.starts = slices.DeleteFunc(m.starts, func(at time.Time) bool { return now.Sub(at) >= time.Minute })
	switch {
	case len(m.starts) >= 3:
		return "rate_limited"
	case m.places >= 5:
		return "too_many"
	}
	m.starts = append(m.starts, now)
	m.places++
	return ""
}

// Random starts, ends, promotions and waits of three agents: each start is decided as the
// model says.
func TestLimitsAgainstAModel(t *testing.T) {
	for seed := range testkit.Rounds(t, testkit.Load(10, 4), 2000) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(seed), 7))
			e, p := engine(t, policy.Options{}), pool(t)
			names := []string{"a", "b", "c"}
			models := map[string]*model{"a": {}, "b": {}, "c": {}}
			running := map[string][]term.Handle{}
			for step := range 200 {
				name := names[r.IntN(len(names))]
				switch op := r.IntN(10); {
				case op < 5:
					req := harmless()
					req.Actor = term.Agent(name)
					h, err := spawn(t.Context(), e, p, req)
					if want := models[name].expect(time.Now()); codeOf(err) != want {
						t.Fatalf("seed %d, step %d, %s: %v, want %q", seed, step, name, err, want)
					}
					if err == nil {
						running[name] = append(running[name], h)
					}
				case op < 8 && len(running[name]) > 0:
					i := r.IntN(len(running[name]))
					h := running[name][i]
					running[name] = slices.Delete(running[name], i, i+1)
					models[name].places--
					end := func() error { return h.Kill(t.Context()) }
					if op == 5 {
						end = h.Promote
					}
					must.Do(t, end())
				default:
					time.Sleep(time.Duration(r.IntN(40)) * time.Second)
				}
			}
		})
	}
}

// Many requests wait, some are cancelled, answers arrive in any order, all at once: each
// gets one outcome, and nothing is left over.
func TestQuestionsUnderLoad(t *testing.T) {
	for seed := range testkit.Rounds(t, 5, 500) {
		synctest.Test(t, func(t *testing.T) {
			c := settings(nil)
			c.Config.Limits.SpawnsPerMinute, c.Config.Limits.Background, c.Config.Limits.Questions = 10_000, 10_000, 100
			e := engine(t, c)
			var askers sync.WaitGroup
			var mu sync.Mutex
			outcomes := map[string]int{}
			const many = 100
			for i := range many {
				askers.Go(func() {
					r := rand.New(rand.NewPCG(uint64(seed), uint64(i)))
					time.Sleep(time.Duration(r.IntN(60)) * time.Second)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					if r.IntN(3) == 0 {
						time.AfterFunc(time.Duration(r.IntN(50))*time.Second, cancel)
					}
					req := asked()
					req.Actor = term.Agent(string(rune('a' + r.IntN(5))))
					_, err := e.Admit(ctx, req)
					mu.Lock()
					outcomes[codeOf(err)]++
					mu.Unlock()
				})
			}
			done := make(chan struct{})
			go func() {
				askers.Wait()
				close(done)
			}()
			answerAll(t, e, rand.New(rand.NewPCG(uint64(seed), 1000)), done)
			total := 0
			for code, n := range outcomes {
				total += n
				if !slices.Contains([]string{"", "rejected", "unanswered", "too_many_asks", context.Canceled.Error()}, code) {
					t.Errorf("seed %d: %d ended with %q", seed, n, code)
				}
			}
			if total != many || e.Waiting(term.User) != 0 {
				t.Errorf("seed %d: %d outcomes of %d (%v), %d still wait", seed, total, many, outcomes, e.Waiting(term.User))
			}
		})
	}
}

// answerAll answers some of the questions there are, now and then, until done.
func answerAll(t *testing.T, e *policy.Engine, r *rand.Rand, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Duration(r.IntN(8)+1) * time.Second):
		}
		all, grants, _ := e.Questions()
		for _, q := range all {
			a := policy.Answer{Allow: r.IntN(2) == 0}
			if a.Allow && r.IntN(4) == 0 {
				a.For = 3 * time.Second
			}
			if r.IntN(3) > 0 {
				continue
			}
			_, g, err := e.Answer(q.ID, a)
			if errors.Is(err, policy.ErrNoQuestion) {
				continue // a grant for the same has answered it just now
			}
			if err != nil || (g != nil) != (a.Allow && (a.For > 0 || q.Expired)) {
				t.Errorf("answer to %+v: %v, %v", q, g, err)
			}
		}
		for _, g := range grants {
			if r.IntN(2) == 0 {
				if _, err := e.Revoke(g.ID); err != nil {
					t.Errorf("revoke: %v", err)
				}
			}
		}
	}
}
