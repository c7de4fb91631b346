package policy_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/config"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

func TestSpawnRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p := engine(t, policy.Options{}), pool(t)
		ctx := t.Context()
		for i, want := range []string{"", "", "", "rate_limited", "rate_limited"} {
			if i == 2 {
				time.Sleep(30 * time.Second)
			}
			_, err := spawn(ctx, e, p, harmless())
			if codeOf(err) != want {
				t.Errorf("spawn %d: %v, want %q", i+1, err, want)
			}
			if want != "" && err.Error() != "Spawn rate limit exceeded (max 3/minute)" {
				t.Errorf("the sentence is %q", err)
			}
		}
		other := harmless()
		other.Actor = term.Agent("b")
		if _, err := spawn(ctx, e, p, other); err != nil {
			t.Errorf("another agent: %v", err)
		}
		time.Sleep(30*time.Second - time.Nanosecond)
		if _, err := spawn(ctx, e, p, harmless()); codeOf(err) != "rate_limited" {
			t.Errorf("before the minute is over: %v", err)
		}
		time.Sleep(time.Nanosecond)
		for i, want := range []string{"", "", "rate_limited"} { // the first two are a minute old, the third is not
			if _, err := spawn(ctx, e, p, harmless()); codeOf(err) != want {
				t.Errorf("spawn %d after a minute: %v, want %q", i+1, err, want)
			}
		}
	})
}

func TestPlacesInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p := engine(t, policy.Options{}), pool(t)
		ctx := t.Context()
		var running []term.Handle
		more := func(want string) {
			t.Helper()
			time.Sleep(time.Minute)
			h, err := spawn(ctx, e, p, harmless())
			if codeOf(err) != want {
				t.Fatalf("%d run: %v, want %q", len(running), err, want)
			}
			if err == nil {
				running = append(running, h)
			} else if err.Error() != "Maximum concurrent agent terminals reached (5)" {
				t.Errorf("the sentence is %q", err)
			}
		}
		for range 5 {
			more("")
		}
		more("too_many")
		must.Do(t, running[0].Kill(ctx))
		more("")
		more("too_many")
		must.Do(t, running[1].Promote())
		more("")
		more("too_many")
		foreground := harmless()
		foreground.Background, foreground.Door = false, policy.DoorACP
		if _, err := spawn(ctx, e, p, foreground); err != nil {
			t.Errorf("a terminal that is not in the background: %v", err)
		}
	})
}

// Refused and failed starts cost nothing.
func TestFailedStartsAreNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p := engine(t, policy.Options{}), pool(t)
		boom := errors.New("boom")
		for range 10 {
			_, err := e.Spawn(t.Context(), harmless(), func() (term.Handle, error) { return term.Handle{}, boom })
			if !errors.Is(err, boom) {
				t.Fatal(err)
			}
			r := harmless()
			r.Argv = []string{"rm", "x"}
			if _, err := spawn(t.Context(), e, p, r); codeOf(err) != "blocked" {
				t.Fatal(err)
			}
		}
		for range 3 {
			if _, err := spawn(t.Context(), e, p, harmless()); err != nil {
				t.Error(err)
			}
		}
	})
}

// Of many requests at once exactly as many pass as are allowed.
func TestLimitsUnderLoad(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*config.Policy)
		want   int
	}{
		{"rate", nil, 3},
		{"places", func(c *config.Policy) { c.Limits.SpawnsPerMinute = 1000 }, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // or the minute might pass
				e, p := engine(t, settings(c.change)), pool(t)
				var wg sync.WaitGroup
				var mu sync.Mutex
				passed := 0
				for range 64 {
					wg.Go(func() {
						if _, err := spawn(context.Background(), e, p, harmless()); err == nil {
							mu.Lock()
							passed++
							mu.Unlock()
						}
					})
				}
				wg.Wait()
				if passed != c.want {
					t.Errorf("%d passed, want %d", passed, c.want)
				}
			})
		})
	}
}

func TestLimitsOfSomePrincipals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p := engine(t, settings(func(c *config.Policy) {
			c.Principals = []config.PolicyIdentity{{Name: "agent:busy-*", SpawnsPerMinute: 10}, {Name: "agent:*", SpawnsPerMinute: 1}}
		})), pool(t)
		for name, want := range map[string]int{"busy-1": 5, "busy-2": 5, "other": 1} { // five at once
			passed := 0
			for range 10 {
				r := harmless()
				r.Actor = term.Agent(name)
				if _, err := spawn(t.Context(), e, p, r); err == nil {
					passed++
				}
			}
			if passed != want {
				t.Errorf("%s started %d, want %d", name, passed, want)
			}
		}
		r := harmless()
		r.Actor = term.User
		for range 50 {
			if _, err := spawn(t.Context(), e, p, r); err != nil {
				t.Fatalf("the person: %v", err)
			}
		}
	})
}

func TestAdoptedTerminalsTakePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p := engine(t, settings(func(c *config.Policy) { c.Limits.Background = 2 })), pool(t)
		old := must.Get(p.As(agent).Spawn(term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/")}))(t)
		persons := must.Get(p.As(term.User).Spawn(term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/")}))(t)
		for range 3 { // taken up again and again
			e.Adopt(old)
			e.Adopt(persons)
		}
		for _, want := range []string{"", "too_many"} {
			if _, err := spawn(t.Context(), e, p, harmless()); codeOf(err) != want {
				t.Errorf("spawn: %v, want %q", err, want)
			}
		}
	})
}

// Admit counts starts, and holds no place.
func TestAdmitHoldsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, settings(func(c *config.Policy) { c.Limits.SpawnsPerMinute = 20 }))
		for i := range 21 {
			d, err := e.Admit(t.Context(), harmless())
			if want := map[bool]string{true: "rate_limited"}[i == 20]; codeOf(err) != want || d.Rule == "" {
				t.Errorf("admit %d: %+v, %v, want %q", i+1, d, err, want)
			}
		}
	})
}

// Different names cannot exceed the limit of all agents together.
func TestTotalOfAllAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, p := engine(t, policy.Options{}), pool(t)
		var first term.Handle
		for i := range 21 {
			r := harmless()
			r.Actor = term.Agent(fmt.Sprint("a", i))
			want := ""
			if i == 20 {
				want = "too_many"
			}
			h, err := spawn(t.Context(), e, p, r)
			if codeOf(err) != want {
				t.Fatalf("agent %d: %v, want %q", i+1, err, want)
			}
			if i == 0 {
				first = h
			}
		}
		must.Do(t, first.Kill(t.Context()))
		if _, err := spawn(t.Context(), e, p, harmless()); err != nil {
			t.Errorf("after one has ended: %v", err)
		}
		foreground := harmless()
		foreground.Background, foreground.Door = false, policy.DoorACP
		if _, err := spawn(t.Context(), e, p, foreground); err != nil {
			t.Errorf("a terminal that is not in the background: %v", err)
		}
	})
}
