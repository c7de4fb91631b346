package local_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// withHeader adds a header to each request.
type withHeader struct {
	to          http.RoundTripper
	name, value string
}

func (h withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(h.name, h.value)
	return h.to.RoundTrip(r)
}

// over opens a session over HTTP.
func over(t *testing.T, url string, via http.RoundTripper) *tools {
	t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	s := must.Get(c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: url, MaxRetries: -1, HTTPClient: &http.Client{Transport: via}},
		&sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"}))(t)
	t.Cleanup(func() { s.Close() })
	return &tools{t, s}
}

// A client over HTTP is the principal of its token or header, and the same agent as over
// lines. The person's own token makes no agent of the person.
func TestMCPPrincipalsOverHTTP(t *testing.T) {
	d := serveTCP(t)
	person, _ := d.spawn("shell")
	token := must.Get(d.tokens.Create("claude"))(t)
	transport := &http.Transport{DisableKeepAlives: true}
	withToken := func(token string) *tools {
		return over(t, "http://"+d.addr+"/mcp", withHeader{transport, "Authorization", "Bearer " + token})
	}
	onSocket := func(name string) *tools {
		c := d.client
		if name != "" {
			c = c.As(name)
		}
		return over(t, "http://"+localapi.Host+"/mcp", c.HTTP().Transport)
	}
	m := d.agent("claude").spawn("x")
	child := <-d.children
	sees := func(a *tools) (ids []string) {
		for _, one := range a.list() {
			ids = append(ids, one.ID)
		}
		return ids
	}
	for name, c := range map[string]struct {
		agent *tools
		want  []string
	}{
		"a token": {withToken(token), []string{person.ID, m.ID}}, "the header": {onSocket("claude"), []string{person.ID, m.ID}},
		"another name": {onSocket("cursor"), []string{person.ID}}, "no name": {onSocket(""), []string{person.ID}}, "the person's token": {withToken(d.token), []string{person.ID}},
	} {
		if got := sees(c.agent); !slices.Equal(got, c.want) {
			t.Errorf("%s sees %v, want %v", name, got, c.want)
		}
		if got, isError := c.agent.call("kill_terminal", args{"terminalId": person.ID}); !isError || got != "Cannot kill visible or user-owned terminals" {
			t.Errorf("%s may kill the person's: %s", name, got)
		}
	}
	if got, isError := withToken(token).call("kill_terminal", args{"terminalId": m.ID}); isError || !child.Killed() {
		t.Errorf("kill of its own over HTTP: %s", got)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+d.addr+"/mcp", strings.NewReader("{}"))
	if resp, err := http.DefaultClient.Do(req); err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token: %v, %v", resp, err)
	}
}

// Revoking a token ends calls that wait with it.
func TestMCPEndsWithToken(t *testing.T) {
	d := serveTCP(t)
	person, _ := d.spawn("shell")
	token := must.Get(d.tokens.Create("claude"))(t)
	a := over(t, "http://"+d.addr+"/mcp", withHeader{&http.Transport{DisableKeepAlives: true}, "Authorization", "Bearer " + token})
	ended := make(chan error, 1)
	go func() {
		result, err := a.session.CallTool(t.Context(), &sdk.CallToolParams{Name: "wait_terminal", Arguments: args{"terminalId": person.ID, "timeoutMs": 600000}})
		if err == nil && result.IsError {
			err = errors.New("told before the connection was cut")
		}
		ended <- err
	}()
	a.list() // after which the wait is on its way
	must.Do(t, d.tokens.Revoke("claude"))
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the wait was answered")
		}
	case <-time.After(patience):
		t.Error("the wait goes on")
	}
}

// With more agents than are served at a time, unused ones make room, and keep their
// terminals.
func TestManyAgents(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	w := serve(t, local.Options{}, term.Options{})
	first := w.agent("agent-first")
	m := first.spawn("x")
	<-w.children
	first.session.Close()
	for i := range local.MaxAgents + 20 {
		stream, err := w.client.As(fmt.Sprintf("agent-%d", i)).MCP(t.Context())
		if err != nil {
			t.Fatalf("agent %d: %v", i, err)
		}
		stream.Close()
	}
	testkit.Eventually(t, patience, "the first finds its terminal again", func() bool {
		return slices.ContainsFunc(w.agent("agent-first").list(), func(one meta) bool { return one.ID == m.ID && one.Owner == "agent" })
	})
}
