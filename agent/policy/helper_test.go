package policy_test

import (
	"context"
	"errors"
	"testing"

	"tether/agent/config"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/platform/pty"
)

// agent is the principal in these tests.
var agent = term.Agent("a")

// settings is the default configuration with changes.
func settings(change func(*config.Policy)) policy.Options {
	c := config.Default().Policy
	if change != nil {
		change(&c)
	}
	return policy.Options{Config: c, Home: "/home/p"}
}

// harmless is a request that is allowed.
func harmless() policy.Request {
	return policy.Request{Door: policy.DoorMCP, Actor: agent, Argv: []string{"npm", "run", "dev"}, Cwd: "/home/p/src", Background: true}
}

// asked is a request that the person is asked about.
func asked() policy.Request {
	r := harmless()
	r.Argv = []string{"python3", "-c", "1"}
	return r
}

// pool returns terminals without processes. It may be called in a bubble.
func pool(t *testing.T) *term.Pool {
	t.Helper()
	p := term.NewPool(term.Options{Start: func(term.ID, pty.Command) (term.PTY, error) { return testkit.NewChild(), nil }})
	t.Cleanup(func() {
		check.OK(t, p.Close(context.Background()))
	})
	return p
}

// spawn admits the request and starts a terminal for it.
func spawn(ctx context.Context, e *policy.Engine, p *term.Pool, r policy.Request) (term.Handle, error) {
	return e.Spawn(ctx, r, func() (term.Handle, error) {
		return p.As(r.Actor).Spawn(term.Spec{Command: []string{"x"}, Cwd: testkit.Abs("/")})
	})
}

// codeOf is the code of a refusal, the text of another error, or "".
func codeOf(err error) string {
	var refused *policy.Refusal
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refused):
		return string(refused.Code)
	}
	return err.Error()
}

// trail is the events written so far, as short texts.
func trail(e *policy.Engine) []string {
	var all []string
	for _, r := range e.Recent() {
		text := string(r.Event)
		for _, more := range []string{r.Effect, r.Rule} {
			if more != "" {
				text += " " + more
			}
		}
		all = append(all, text)
	}
	return all
}
