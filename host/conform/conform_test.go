package conform_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/host/conform"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// verdicts returns the rules by their verdict, as text for messages.
func verdicts(r *conform.Report) map[conform.Verdict][]string {
	all := map[conform.Verdict][]string{}
	for _, one := range r.Results {
		all[one.Verdict] = append(all[one.Verdict], one.Group+": "+one.Rule+": "+one.Why)
	}
	return all
}

func check(t *testing.T, o conform.Options) (*conform.Report, map[conform.Verdict][]string) {
	t.Helper()
	r := must.Get(conform.Run(t.Context(), o))(t)
	return r, verdicts(r)
}

// at serves a handler and returns its URL.
func at(t *testing.T, h http.Handler) client.Endpoint {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return client.Endpoint{URL: "ws" + strings.TrimPrefix(s.URL, "http")}
}

func TestOwnHostKeepsTheRules(t *testing.T) {
	h := host.New(host.Options{})
	t.Cleanup(h.Close)
	r, by := check(t, conform.Options{Endpoint: at(t, h), Timeout: testkit.Patience})
	if !r.Marker || r.Failed() {
		t.Errorf("marker %v, broken rules:\n%s", r.Marker, strings.Join(by[conform.Fail], "\n"))
	}
	for _, skipped := range by[conform.Skip] {
		if !strings.HasPrefix(skipped, "plain: ") { // it runs no shells here
			t.Errorf("skipped %s", skipped)
		}
	}
	if len(by[conform.Pass]) < 25 {
		t.Errorf("only %d rules were checked", len(by[conform.Pass]))
	}
}

// roles lets "lend" lend and "watch" watch.
type roles struct{}

func (roles) Authenticate(token string) (rights.Principal, bool) {
	role, ok := map[string]rights.Role{"lend": rights.RoleMachine, "watch": rights.RoleObserver}[token]
	return rights.Principal{Name: token, Role: role}, ok
}

func (r roles) Known(token string) (rights.Principal, bool) { return r.Authenticate(token) }

func TestWithRoles(t *testing.T) {
	h := host.New(host.Options{Access: roles{}})
	t.Cleanup(h.Close)
	e := at(t, h)
	owner, observer := e, e
	owner.Token, observer.Token = "lend", "watch"
	r, by := check(t, conform.Options{Endpoint: owner, Observer: observer, Timeout: testkit.Patience})
	if r.Failed() {
		t.Errorf("broken rules:\n%s", strings.Join(by[conform.Fail], "\n"))
	}
	e.Token = "wrong"
	if r, err := conform.Run(t.Context(), conform.Options{Endpoint: e}); err == nil {
		t.Errorf("with a wrong token: %+v", r)
	}
}

// yes is a host that accepts everything and does nothing.
func yes(ctx context.Context, _ client.Endpoint, o client.Options) (*client.Conn, error) {
	near, ch := testkit.Channels()
	result := ahp.InitializeResult{ProtocolVersion: ahp.Versions()[0], Meta: ahp.NewClientTerminals(1000).Meta()}
	peer := jsonrpc.NewPeer(ch, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) {
		switch {
		case r.IsNotification():
		case r.Method == ahp.MethodInitialize:
			_ = r.Reply(result)
		case r.Method == ahp.MethodSubscribe:
			_ = r.Reply(json.RawMessage(`{"snapshot":{"resource":"ahp-root://","fromSeq":0,"state":{"agents":[],"terminals":[],"content":[]}}}`))
		default:
			_ = r.Reply(nil)
		}
	})})
	go func() { _ = peer.Run(context.Background()) }() // until the other end closes
	return client.ConnectChannel(ctx, near, o)
}

// At a host that keeps no rule, the check finds every rule broken that can be.
func TestRulesCanFail(t *testing.T) {
	synctest.Test(t, rulesCanFail) // expired waits take no real time
}

func rulesCanFail(t *testing.T) {
	r, by := check(t, conform.Options{Endpoint: client.Endpoint{URL: "ws://nowhere"}, Connect: yes})
	if !r.Failed() {
		t.Fatalf("it passes:\n%v", by)
	}
	for _, passed := range by[conform.Pass] {
		known := false
		// A host that accepts everything and does nothing keeps these rules.
		for _, harmless := range []string{"initialize selects", "ping is", "root returns", "changes nothing", "does not receive its own", "disposeTerminal removes the terminal"} {
			known = known || strings.Contains(passed, harmless)
		}
		if !known {
			t.Errorf("a host that does nothing keeps %s", passed)
		}
	}
}

// vscodeHost starts VS Code's own agent host, where it is installed.
func vscodeHost(t *testing.T) client.Endpoint {
	t.Helper()
	h := testkit.StartVSCodeHost(t, "../..")
	e := client.Endpoint{URL: h.URL, Token: h.Token}
	testkit.Eventually(t, 5*time.Minute, "VS Code's host answers", func() bool {
		conn, err := client.Connect(t.Context(), e, client.Options{ClientID: "looks"})
		if err == nil {
			conn.Close()
		}
		return err == nil
	})
	return e
}

// A host from elsewhere, VS Code's, passes the rules of the plain protocol.
func TestVSCodeKeepsThePlainRules(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	r, by := check(t, conform.Options{Endpoint: vscodeHost(t), Timeout: testkit.Patience})
	if r.Marker || r.Failed() || len(by[conform.Pass]) < 20 {
		t.Errorf("marker %v, %d rules kept, broken:\n%s", r.Marker, len(by[conform.Pass]), strings.Join(by[conform.Fail], "\n"))
	}
}
