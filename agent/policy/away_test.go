package policy_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/config"
	"tether/agent/policy"
	"tether/agent/term"
)

// away is a request of an agent at a host, in one of its sessions.
func away(session string, argv ...string) policy.Request {
	return policy.Request{Door: policy.DoorAHP, Actor: term.AgentAt("lab", session), Argv: argv, Cwd: "/home/p/src", Background: true}
}

// A command that is allowed only because no rule denies it needs a question if it comes
// from a host, unless the person has made rules for agents at hosts.
func TestAgentsAtHostsAreAskedAbout(t *testing.T) {
	allow := func(name string) func(*config.Policy) {
		return func(c *config.Policy) { c.Principals = []config.PolicyIdentity{{Name: name, Default: "allow"}} }
	}
	rule := func(r config.PolicyRule) func(*config.Policy) {
		r.Name, r.Effect, r.Argv = "npm", "allow", []string{"npm"}
		return func(c *config.Policy) { c.Rules = []config.PolicyRule{r} }
	}
	for _, c := range []struct {
		name   string
		change func(*config.Policy)
		argv   []string
		want   policy.Effect
	}{
		{"out of the box", nil, []string{"npm", "test"}, policy.Ask},
		{"what agents here may by default", allow("agent:*"), []string{"npm", "test"}, policy.Ask},
		{"what agents of the host may", allow("agent:lab/*"), []string{"npm", "test"}, policy.Allow},
		{"what agents of another host may", allow("agent:work/*"), []string{"npm", "test"}, policy.Ask},
		{"what agents of all hosts may", allow("agent:*/*"), []string{"npm", "test"}, policy.Allow},
		{"the default is no", func(c *config.Policy) { c.Default = "deny" }, []string{"npm", "test"}, policy.Deny},
		{"a rule for all agents", rule(config.PolicyRule{}), []string{"npm", "test"}, policy.Allow},
		{"a rule for this door", rule(config.PolicyRule{Doors: []string{"ahp"}}), []string{"npm", "test"}, policy.Allow},
		{"a rule for another door", rule(config.PolicyRule{Doors: []string{"mcp"}}), []string{"npm", "test"}, policy.Ask},
		{"the block list", allow("agent:lab/*"), []string{"rm", "-rf", "x"}, policy.Deny},
		{"tether itself", allow("agent:lab/*"), []string{"tether", "approve", "q-1"}, policy.Deny},
	} {
		if got := engine(t, settings(c.change)).Check(away("s1", c.argv...)); got.Effect != c.want {
			t.Errorf("%s: %s (%s), want %s", c.name, got.Effect, got.Rule, c.want)
		}
	}
	if got := engine(t, settings(nil)).Check(harmless()); got.Effect != policy.Allow {
		t.Errorf("an agent that is here: %s", got.Effect)
	}
}

// The sessions of a host share their limits, however many there are.
func TestSessionsOfAHostShareLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := settings(func(c *config.Policy) {
			c.Principals = []config.PolicyIdentity{{Name: "agent:lab/*", Default: "allow", SpawnsPerMinute: 2, Background: 3}}
		})
		e, p := engine(t, open), pool(t)
		for _, c := range []struct{ session, want string }{
			{"s1", ""}, {"s2", ""}, {"s3", "rate_limited"}, {"s1", "rate_limited"},
		} {
			if _, err := spawn(t.Context(), e, p, away(c.session, "npm", "test")); codeOf(err) != c.want {
				t.Errorf("session %s: %v, want %q", c.session, err, c.want)
			}
		}
		time.Sleep(time.Minute)
		if _, err := spawn(t.Context(), e, p, away("s4", "npm", "test")); err != nil {
			t.Error(err)
		}
		if _, err := spawn(t.Context(), e, p, away("s5", "npm", "test")); codeOf(err) != "too_many" {
			t.Errorf("a fourth terminal: %v, want too_many", err)
		}
		other := away("", "npm", "test")
		other.Actor = term.AgentAt("work", "s1")
		if got := e.Check(other); got.Effect != policy.Ask {
			t.Errorf("another host: %s", got.Effect)
		}
	})
}

// So do their questions.
func TestSessionsOfAHostShareQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := engine(t, settings(func(c *config.Policy) { c.Limits.SpawnsPerMinute = 100 }))
		ctx, cancel := context.WithCancel(t.Context())
		for range 3 {
			go e.Admit(ctx, away("s1", "npm", "test")) // the end of the test ends it
		}
		synctest.Wait()
		if _, err := e.Admit(ctx, away("s2", "npm", "test")); codeOf(err) != "too_many_asks" {
			t.Errorf("a question of another session: %v, want too_many_asks", err)
		}
		cancel()
		synctest.Wait()
	})
}
