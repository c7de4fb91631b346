package local_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/term"
)

// Lending to somebody extends the audience, and keeps the end; a refusal by the host changes nothing.
func TestLendTo(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	w.daemon.hosts = []localapi.HostStatus{{Name: "lab", Default: true}}
	ctx := t.Context()
	tm, _ := w.spawn("build")
	lend := func(r localapi.LendRequest) (*localapi.Audience, error) {
		got, err := w.client.Lend(ctx, "build", r)
		if err != nil {
			return nil, err
		}
		return got.Loans[0].Audience, nil
	}
	if a, err := lend(localapi.LendRequest{ForMs: time.Hour.Milliseconds(), To: []string{"ann", "group:web"}}); err != nil ||
		!cmp.Equal(a, &localapi.Audience{To: []string{"ann", "group:web"}, FromNow: []string{}, NotTo: []string{}}) {
		t.Fatalf("%+v, %v", a, err)
	}
	if _, err := lend(localapi.LendRequest{To: []string{"agent:ci", "ann"}}); err != nil {
		t.Fatal(err)
	}
	got, err := w.client.UnlendFrom(ctx, "build", "", []string{"ann", "group:web"})
	if err != nil || got.Loans[0].Until == nil || !cmp.Equal(got.Loans[0].Audience, &localapi.Audience{To: []string{"agent:ci"}, FromNow: []string{}, NotTo: []string{"ann"}}) {
		t.Fatalf("%+v, %v", got.Loans, err)
	}
	if diff := cmp.Diff(map[string][]string{"lab": nil}, w.daemon.checked); diff != "" || w.daemon.told != 3 {
		t.Errorf("told %d times; %s", w.daemon.told, diff)
	}
	w.daemon.refuses = &localapi.Error{Code: localapi.CodeBadRequest, Message: "no such name"}
	if _, err := lend(localapi.LendRequest{To: []string{"bob"}}); err == nil {
		t.Error("bob was taken")
	}
	all, err := w.client.List(ctx)
	if err != nil || !cmp.Equal(all.Terminals[0].Loans[0].Audience.To, []string{"agent:ci"}) {
		t.Errorf("after the refusal %+v, %v", all.Terminals[0].Loans, err)
	}
	w.daemon.refuses = nil
	for _, r := range []localapi.LendRequest{{To: []string{"a b"}}, {To: []string{"-x"}}, {FromNow: true}, {To: make([]string, 65)}} {
		if _, err := lend(r); err == nil {
			t.Errorf("%+v was taken", r)
		}
	}
	for _, from := range []string{"group:ops", "everyone", "a b"} {
		if _, err := w.client.UnlendFrom(ctx, "build", "", []string{from}); err == nil {
			t.Errorf("unlend from %s was taken", from)
		}
	}
	// An agent neither sees the audience nor changes it.
	agent := w.client.As("somebody")
	seen, err := agent.List(ctx)
	if err != nil || seen.Terminals[0].Loans[0].Audience != nil || seen.Terminals[0].Loans[0].Watchers != nil {
		t.Errorf("an agent sees %+v, %v", seen.Terminals, err)
	}
	_, errLend := agent.Lend(ctx, tm.ID, localapi.LendRequest{To: []string{"bob"}})
	_, errFrom := agent.UnlendFrom(ctx, tm.ID, "", []string{"agent:ci"})
	for _, err := range []error{errLend, errFrom} {
		var e *localapi.Error
		if !errors.As(err, &e) || e.Code != localapi.CodeDenied {
			t.Errorf("an agent: %v", err)
		}
	}
}

// The host's report of watchers is in the answers, for the person.
func TestHostSays(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	tm, _ := w.spawn("build")
	said := &localapi.Watchers{May: []string{"ann"}, Refused: []string{}, Watching: []localapi.Watcher{{Who: "ann", Kind: "person", Since: time.Now().UTC()}}, More: 1}
	w.daemon.hosts = []localapi.HostStatus{{Name: "lab", Default: true, Lent: []localapi.Lent{{ID: tm.ID, There: true, Watchers: said}}}}
	got, err := w.client.Lend(t.Context(), "build", localapi.LendRequest{})
	if diff := cmp.Diff(said, got.Loans[0].Watchers); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}
