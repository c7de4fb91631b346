package local_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// wantCode fails the test unless err is an *Error with that code.
func wantCode(t *testing.T, what string, err error, code localapi.Code) {
	t.Helper()
	var e *localapi.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("%s: %v, want %s", what, err, code)
	}
}

func TestAgentSeesItsOwnAndThePersonsTerminals(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	ctx := t.Context()
	w.spawn("persons")
	must.Get(w.client.Spawn(ctx, localapi.SpawnRequest{Command: []string{"x"}, Name: "secret", Cwd: testkit.Abs("/"), Private: true}))(t)
	<-w.children
	one, two := w.client.As("agent-1"), w.client.As("agent:2@x")
	own, err := one.Spawn(ctx, localapi.SpawnRequest{Command: []string{"x"}, Name: "own", Cwd: testkit.Abs("/")})
	must.Do(t, err)
	child := <-w.children
	if own.Owner != "agent agent-1" || own.Visible {
		t.Errorf("spawned by an agent: owner %q, visible %v", own.Owner, own.Visible)
	}
	for _, c := range []struct {
		who   string
		c     *localclient.Client
		names []string
	}{
		{"the person", w.client, []string{"own", "persons", "secret"}},
		{"its owner", one, []string{"own", "persons"}},
		{"another agent", two, []string{"persons"}},
	} {
		l := must.Get(c.c.List(ctx))(t)
		var names []string
		for _, tm := range l.Terminals {
			names = append(names, tm.Name)
		}
		slices.Sort(names)
		check.Equal(t, c.who, c.names, names)
		s, err := c.c.Status(ctx)
		if c.who != "the person" && (err != nil || s.Terminals.Running != len(c.names)) {
			t.Errorf("%s: status %+v, %v", c.who, s, err)
		}
	}
	for _, ref := range []string{"secret", "own"} {
		_, err := two.Find(ctx, ref)
		wantCode(t, "find "+ref, err, localapi.CodeNoTerminal)
		_, err = two.Kill(ctx, ref)
		wantCode(t, "kill "+ref, err, localapi.CodeNoTerminal)
		_, err = two.Attach(ctx, ref, localclient.AttachOptions{})
		wantCode(t, "attach "+ref, err, localapi.CodeNoTerminal)
	}
	_, err = one.Kill(ctx, "persons")
	wantCode(t, "kill the person's", err, localapi.CodeDenied)
	_, err = one.Attach(ctx, "persons", localclient.AttachOptions{})
	wantCode(t, "attach the person's", err, localapi.CodeDenied)
	r, err := one.Read(ctx, "persons", localclient.ReadOptions{}, nil)
	if err != nil {
		t.Errorf("read the person's: %v", err)
	} else {
		r.Close()
	}
	a := must.Get(one.Attach(ctx, "own", localclient.AttachOptions{}))(t)
	defer a.Close()
	check.OK(t, a.Write(ctx, []byte("typed")))
	testkit.Eventually(t, patience, "the agent types", func() bool { return child.Typed() == "typed" })
	if tm, err := one.Kill(ctx, "own"); err != nil || tm.Exit == nil {
		t.Errorf("kill one's own: %+v, %v", tm, err)
	}
}

// A refused administrative request of an agent is recorded: the agent and the door, and
// nothing of its contents.
func TestRefusalsOfTheDoorAreWrittenDown(t *testing.T) {
	w, e := judged(t, nil)
	a := w.client.As("a")
	_, made := a.CreateToken(t.Context(), "canary")
	_, approved := a.Approve(t.Context(), "q-canary", true, 0)
	_, lent := a.Lend(t.Context(), "canary", localapi.LendRequest{})
	for what, err := range map[string]error{"a token": made, "an approval": approved, "a lending": lent, "a host": second(a.Unpair(t.Context(), "canary"))} {
		wantCode(t, what, err, localapi.CodeDenied)
	}
	var got []string
	for _, r := range e.Recent() {
		got = append(got, string(r.Event)+" "+r.Actor+" "+r.Detail)
	}
	want := []string{"refusal agent:a POST /v1/tokens", "refusal agent:a POST /v1/approvals/{id}", "refusal agent:a POST /v1/terminals/{ref}/lend", "refusal agent:a DELETE /v1/hosts/{name}"}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +written down:\n%s", diff)
	}
}

func TestAgentMayNotAdminister(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	ctx := t.Context()
	a := w.client.As("a")
	_, env := a.Environment(ctx, false)
	_, fresh := a.Environment(ctx, true)
	_, pair := a.Pair(ctx, localapi.PairRequest{Name: "n", URL: "u"})
	_, private := a.Spawn(ctx, localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/"), Private: true})
	_, lend := a.Spawn(ctx, localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/"), LendTo: []string{"n"}})
	for what, err := range map[string]error{
		"environment": env, "environment anew": fresh, "pair": pair, "unpair": second(a.Unpair(ctx, "n")), "shutdown": a.Shutdown(ctx),
		"a private terminal": private, "a terminal lent to a host of its choice": lend,
	} {
		wantCode(t, what, err, localapi.CodeDenied)
	}
	if len(w.daemon.asked) > 0 {
		t.Errorf("the daemon was asked %q", w.daemon.asked)
	}
}

func TestPrincipalsAreChecked(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	for _, c := range []struct {
		name, header string
		status       int
	}{
		{"longest", "Tether-Principal: " + strings.Repeat("a", 64), 200},
		{"every kind", "tether-principal: Az09._:@-", 200},
		{"empty", "Tether-Principal:", 400},
		{"too long", "Tether-Principal: " + strings.Repeat("a", 65), 400},
		{"a blank", "Tether-Principal: a b", 400},
		{"a slash", "Tether-Principal: a/b", 400},
		{"not ASCII", "Tether-Principal: ä", 400},
		{"two", "Tether-Principal: a\r\nTether-Principal: b", 400},
	} {
		resp := ask(t, w, "GET /v1/terminals HTTP/1.1\r\nHost: tether\r\n"+c.header+"\r\n\r\n")
		if resp == nil || resp.StatusCode != c.status {
			t.Errorf("%s: %v, want %d", c.name, resp, c.status)
			continue
		}
		if c.status != http.StatusOK {
			if got := codeOf(t, resp); got != localapi.CodeBadRequest {
				t.Errorf("%s: %s", c.name, got)
			}
		}
	}
}
