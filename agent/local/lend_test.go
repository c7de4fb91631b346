package local_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/vocab"
)

func TestLendAndUnlend(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	w.daemon.hosts = []localapi.HostStatus{{Name: "lab", Default: true}, {Name: "office"}}
	ctx := t.Context()
	tm, _ := w.spawn("build")
	two := 2
	w.daemon.hosts[1].Lent = []vocab.Lent{{ID: tm.ID, Observers: &two}}

	got, err := w.client.Lend(ctx, "build", localapi.LendRequest{})
	if err != nil || len(got.Loans) != 1 || got.Loans[0].Host != "lab" || got.Loans[0].Until != nil || got.Loans[0].Observers != nil {
		t.Fatalf("lend: %+v, %v", got.Loans, err)
	}
	got, err = w.client.Lend(ctx, "build", localapi.LendRequest{Host: "office", ForMs: time.Hour.Milliseconds()})
	if err != nil || len(got.Loans) != 2 || got.Loans[1].Until == nil {
		t.Fatalf("lend for an hour: %+v, %v", got.Loans, err)
	}
	if left := time.Until(*got.Loans[1].Until); left <= 0 || left > time.Hour {
		t.Errorf("it ends in %v, want an hour", left)
	}
	all, err := w.client.List(ctx)
	if err != nil || len(all.Terminals[0].Loans) != 2 || all.Terminals[0].Loans[1].Observers == nil || *all.Terminals[0].Loans[1].Observers != 2 {
		t.Errorf("list: %+v, %v; want two observers at office", all.Terminals, err)
	}
	if got, err = w.client.Unlend(ctx, "build", "lab"); err != nil || len(got.Loans) != 1 || got.Loans[0].Host != "office" {
		t.Errorf("unlend from lab: %+v, %v", got.Loans, err)
	}
	if got, err = w.client.Unlend(ctx, "build", "lab"); err != nil || len(got.Loans) != 1 {
		t.Errorf("once more: %+v, %v", got.Loans, err)
	}
	if got, err = w.client.Unlend(ctx, "build", ""); err != nil || len(got.Loans) != 0 {
		t.Errorf("unlend: %+v, %v", got.Loans, err)
	}
}

func TestUnlendAll(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	w.daemon.hosts = []localapi.HostStatus{{Name: "lab", Default: true}, {Name: "office"}}
	ctx := t.Context()
	for _, name := range []string{"a", "b", "c"} {
		w.spawn(name)
	}
	for _, l := range []struct{ ref, host string }{{"a", "lab"}, {"a", "office"}, {"b", "office"}} {
		must.Get(w.client.Lend(ctx, l.ref, localapi.LendRequest{Host: l.host}))(t)
	}
	if l, err := w.client.UnlendAll(ctx, "lab"); err != nil || len(l.Terminals) != 1 || len(l.Terminals[0].LentTo) != 1 {
		t.Errorf("from lab: %+v, %v", l.Terminals, err)
	}
	if l, err := w.client.UnlendAll(ctx, ""); err != nil || len(l.Terminals) != 2 {
		t.Errorf("from all: %+v, %v", l.Terminals, err)
	}
	if l, err := w.client.UnlendAll(ctx, ""); err != nil || len(l.Terminals) != 0 {
		t.Errorf("again: %+v, %v", l.Terminals, err)
	}
}

func TestLendIsRefused(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{MayLend: func(i term.Info, host string) error {
		if host == "never" {
			return &localapi.Error{Code: localapi.CodeDenied, Message: "a rule"}
		}
		return nil
	}})
	ctx := t.Context()
	w.spawn("build")
	must.Get(w.client.Spawn(ctx, localapi.SpawnRequest{Command: []string{"x"}, Name: "mine", Cwd: testkit.Abs("/"), Private: true}))(t)
	codeOf := func(err error) localapi.Code {
		var e *localapi.Error
		if errors.As(err, &e) {
			return e.Code
		}
		return ""
	}
	lend := func(ref string, r localapi.LendRequest) error { _, err := w.client.Lend(ctx, ref, r); return err }
	if err := lend("build", localapi.LendRequest{}); codeOf(err) != localapi.CodeNotPaired {
		t.Errorf("without a host: %v", err)
	}
	w.daemon.hosts = []localapi.HostStatus{{Name: "never"}, {Name: "lab"}}
	for _, c := range []struct {
		ref  string
		r    localapi.LendRequest
		want localapi.Code
	}{
		{"build", localapi.LendRequest{}, localapi.CodeNotPaired}, // none is the default
		{"build", localapi.LendRequest{Host: "nobody"}, localapi.CodeNotPaired},
		{"build", localapi.LendRequest{Host: "lab", ForMs: -1}, localapi.CodeBadRequest},
		{"build", localapi.LendRequest{Host: "lab", ForMs: 1 << 60}, localapi.CodeBadRequest},
		{"build", localapi.LendRequest{Host: "never"}, localapi.CodeDenied},
		{"missing", localapi.LendRequest{Host: "lab"}, localapi.CodeNoTerminal},
		{"mine", localapi.LendRequest{Host: "lab"}, localapi.CodeDenied},
	} {
		if err := lend(c.ref, c.r); codeOf(err) != c.want {
			t.Errorf("lend %s %+v: %v, want %s", c.ref, c.r, err, c.want)
		}
	}
	agent := w.client.As("somebody")
	_, errLend := agent.Lend(ctx, "build", localapi.LendRequest{Host: "lab"})
	_, errUnlend := agent.Unlend(ctx, "build", "")
	_, errAll := agent.UnlendAll(ctx, "")
	for _, err := range []error{errLend, errUnlend, errAll} {
		if codeOf(err) != localapi.CodeDenied {
			t.Errorf("an agent: %v, want it denied", err)
		}
	}
}

// Lending to somebody extends the audience, and keeps the end; a refusal by the host
// changes nothing.
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
	must.Get(lend(localapi.LendRequest{To: []string{"agent:ci", "ann"}}))(t)
	got, err := w.client.UnlendFrom(ctx, "build", "", []string{"ann", "group:web"})
	if err != nil || got.Loans[0].Until == nil || !cmp.Equal(got.Loans[0].Audience, &localapi.Audience{To: []string{"agent:ci"}, FromNow: []string{}, NotTo: []string{"ann"}}) {
		t.Fatalf("%+v, %v", got.Loans, err)
	}
	if diff := cmp.Diff(map[string][]string{"lab": nil}, w.daemon.checked); diff != "" || w.daemon.told != 3 {
		t.Errorf("told %d times; %s", w.daemon.told, diff)
	}
	w.daemon.refuses = localapi.BadRequest("no such name")
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
	said := &vocab.Watchers{May: []string{"ann"}, Refused: []string{}, Watching: []vocab.Watcher{{Who: "ann", Kind: "person", Since: time.Now().UTC()}}, More: 1}
	w.daemon.hosts = []localapi.HostStatus{{Name: "lab", Default: true, Lent: []vocab.Lent{{ID: tm.ID, There: true, Watchers: said}}}}
	got, err := w.client.Lend(t.Context(), "build", localapi.LendRequest{})
	if diff := cmp.Diff(said, got.Loans[0].Watchers); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}
