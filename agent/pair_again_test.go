package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/agent"
	"tether/agent/localapi"
	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// roles lets in tokens that are a role, a dash and a name.
type roles struct{}

func (roles) Authenticate(token string) (rights.Principal, bool) {
	role, name, ok := strings.Cut(token, "-")
	return rights.Principal{Name: name, Role: rights.Role(role)}, ok
}

func (r roles) Known(token string) (rights.Principal, bool) { return r.Authenticate(token) }

// Pairing checks first: a token with which nothing can be lent changes nothing, the same
// token disturbs no link, and another one lends everything again at once, since the host
// knows the clientId as that of the first.
func TestPairingAgain(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	h := host.New(host.Options{Access: roles{}})
	t.Cleanup(h.Close)
	url := serveHTTP(t, h)
	d := home(t)
	a := start(t, agent.Config{Dirs: d})
	pair := func(token string) error {
		_, err := a.client.Pair(t.Context(), localapi.PairRequest{URL: url, Token: token})
		return err
	}
	must.Do(t, pair("machine-laptop"))
	must.Get(a.client.Spawn(t.Context(), localapi.SpawnRequest{Command: testkit.Sleep(), Env: os.Environ(), Cwd: testkit.Abs("/"), Name: "web"}))(t)
	there := func(s localapi.Status) bool {
		return len(s.Hosts) == 1 && len(s.Hosts[0].Lent) == 1 && s.Hosts[0].Lent[0].There
	}
	on := true
	must.Get(a.client.ChangeHost(t.Context(), "local", localapi.HostChange{Tools: &on}))(t)
	first := a.status("it is there", there)
	kept := func() string {
		data := must.Get(os.ReadFile(filepath.Join(d.State, "hosts.json")))(t)
		return string(data)
	}
	before := kept()

	for _, token := range []string{"observer-ann", "agent-bot", "nobody", "machine-laptop"} {
		err := pair(token)
		if e, ok := errors.AsType[*localapi.Error](err); token != "machine-laptop" && (!ok || e.Code != localapi.CodeRefused || localapi.ExitStatus(err) != 4 || e.Hint == "") {
			t.Errorf("%s: %v, want %s with a hint", token, err, localapi.CodeRefused)
		} else if token == "machine-laptop" && err != nil {
			t.Errorf("again: %v", err)
		}
		if after := kept(); after != before {
			t.Errorf("%s: the file of hosts is %s, was %s", token, after, before)
		}
		if s := a.status("it is there", there); !s.Hosts[0].Since.Equal(first.Hosts[0].Since) || s.Hosts[0].Lent[0].URI != first.Hosts[0].Lent[0].URI {
			t.Errorf("%s: the link is %+v, was %+v", token, s.Hosts[0], first.Hosts[0])
		}
	}

	// Another token of the same machine, and one of another: neither waits for the grace
	// time of the terminals that the former had lent.
	watcher := must.Get(client.Connect(t.Context(), client.Endpoint{URL: url, Token: "observer-ann"}, client.Options{ClientID: client.NewID(), Subscriptions: []string{ahp.RootURI}}))(t)
	defer watcher.Close()
	former := first.Hosts[0].Lent[0].URI
	for _, token := range []string{"admin-laptop", "machine-other"} {
		must.Do(t, pair(token))
		s := a.status("it is there again", there)
		if uri := s.Hosts[0].Lent[0].URI; uri == former {
			t.Errorf("%s: it is lent as %s again", token, uri)
		} else if state, err := watcher.Subscribe(t.Context(), uri); err != nil || strings.Contains(string(state.Snapshot.State), former) != (token == "admin-laptop") {
			// of another machine the host believes nothing about this one's terminals
			t.Errorf("%s: the host has %+v (%v); %s was the former one", token, state, err, former)
		} else if _, err := watcher.Subscribe(t.Context(), former); err == nil {
			t.Errorf("%s: %s is still there", token, former)
		} else {
			former = uri
		}
	}
	if kept() == before {
		t.Error("the clientId is still that of the first token")
	}
}
