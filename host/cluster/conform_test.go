package cluster_test

import (
	"context"
	"encoding/json"
	"testing"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/host/conform"
	"tether/host/terminals"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// The rules that a host keeps hold also for who watches at another node than the
// machine's.
func TestRulesAcrossNodes(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	a, b := start(t, servers.URLs, host.Options{}), start(t, servers.URLs, host.Options{})
	text := func(n *node) func(uri string) string {
		c := must.Get(client.Connect(t.Context(), client.Endpoint{URL: n.url, Token: own}, client.Options{ClientID: client.NewID()}))(t)
		t.Cleanup(c.Close)
		return func(uri string) string {
			var state ahp.TerminalState
			r, err := c.Subscribe(t.Context(), uri)
			if err != nil || r.Snapshot == nil || json.Unmarshal(r.Snapshot.State, &state) != nil {
				return "none"
			}
			_ = c.Unsubscribe(t.Context(), uri) // it may be gone
			return state.Text()
		}
	}
	catalogue := func(n *node) string {
		c := must.Get(client.Connect(t.Context(), client.Endpoint{URL: n.url, Token: own}, client.Options{ClientID: client.NewID()}))(t)
		defer c.Close()
		r, err := c.Subscribe(t.Context(), ahp.RootURI)
		if err != nil || r.Snapshot == nil {
			t.Fatal(err)
		}
		return string(r.Snapshot.State)
	}
	here, far := text(a), text(b)
	there := func() bool {
		all := a.Terminals().NodeChanges(t.Context(), 0, terminals.ChangesAtOnce).Entries
		for _, e := range all {
			if here(e.URI) != far(e.URI) {
				return false
			}
		}
		return len(b.Terminals().MirrorsOf(a.of.ID())) == len(all) && catalogue(a) == catalogue(b)
	}
	report := must.Get(conform.Run(t.Context(), conform.Options{Endpoint: client.Endpoint{URL: a.url, Token: own}, Observer: client.Endpoint{URL: b.url, Token: own}, Timeout: patience,
		Settle: func(context.Context) error {
			testkit.Eventually(t, patience, "the other node has it", there)
			return nil
		}}))(t)
	passed := 0
	for _, r := range report.Results {
		switch r.Verdict {
		case conform.Pass:
			passed++
		case conform.Fail:
			t.Errorf("%s: %s", r.Rule, r.Why)
		}
	}
	if passed < 35 {
		t.Errorf("only %d rules were checked", passed)
	}
}
