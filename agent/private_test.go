package agent_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/localapi"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// A private host gets the one terminal: it is not paired, no request can lend to it, and
// the loan ends with its link.
func TestPrivateHost(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	a := start(t, agent.Config{Dirs: home(t)})
	spawn := func(name string, to []string) error {
		_, err := a.client.Spawn(t.Context(), localapi.SpawnRequest{Name: name, Command: testkit.Sleep(), Env: os.Environ(), Cwd: testkit.Abs("/"), LendTo: to})
		return err
	}
	for _, name := range []string{"shown", "other"} {
		must.Do(t, spawn(name, nil))
	}
	url := startHost(t, "right")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	made, wait, err := a.client.ShareHere(ctx, "shown", localapi.ShareRequest{Here: &localapi.PrivateHost{URL: url, Token: "right"}})
	must.Do(t, err)
	a.status("the terminal is there, and no host", func(s localapi.Status) bool {
		return len(s.Hosts) == 0 && s.Terminals.There == 1 && s.Terminals.Lent == 1
	})
	if _, err := a.client.Lend(t.Context(), "other", localapi.LendRequest{Host: made.Host}); localapi.ExitStatus(err) != localapi.ExitNotPaired {
		t.Errorf("another terminal is lent there: %v", err)
	}
	if err := spawn("third", []string{made.Host}); localapi.ExitStatus(err) != localapi.ExitNotPaired {
		t.Errorf("a new terminal is lent there: %v", err)
	}
	cancel()
	if err := wait(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	a.status("nothing is lent", func(s localapi.Status) bool { return s.Terminals.Lent == 0 && s.Terminals.There == 0 })

	for _, c := range []struct {
		url, token string
		code       localapi.Code
	}{
		{url, "wrong", localapi.CodeRefused},
		{"wss://host.example", "right", localapi.CodeBadRequest},
		{"ws://127.0.0.1:1", "right", localapi.CodeUnreachable},
		{url, "a b", localapi.CodeBadRequest},
	} {
		_, _, err := a.client.ShareHere(t.Context(), "shown", localapi.ShareRequest{Here: &localapi.PrivateHost{URL: c.url, Token: c.token}})
		var e *localapi.Error
		if !errors.As(err, &e) || e.Code != c.code {
			t.Errorf("%s: %v, want %s", c.url, err, c.code)
		}
	}
}

// A request with an empty list of hosts lends to nobody, also not to the default host.
func TestLentToNobody(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	settings := config.Default()
	settings.Lend.AsRoot = true
	a := start(t, agent.Config{Dirs: home(t), Settings: &settings})
	must.Get(a.client.Pair(t.Context(), localapi.PairRequest{URL: startHost(t, "right"), Token: "right", Name: "lab"}))(t)
	for _, c := range []struct {
		to   []string
		want int
	}{{nil, 1}, {[]string{}, 0}, {[]string{"lab"}, 1}} {
		got, err := a.client.Spawn(t.Context(), localapi.SpawnRequest{Command: testkit.Sleep(), Env: os.Environ(), Cwd: testkit.Abs("/"), LendTo: c.to})
		if err != nil || len(got.LentTo) != c.want {
			t.Errorf("%#v: lent to %v, %v", c.to, got.LentTo, err)
		}
	}
}
