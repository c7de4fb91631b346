package cluster_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit"
)

// agent is a session of an MCP client at a node.
type agent struct {
	t       *testing.T
	session *sdk.ClientSession
}

func newAgent(t *testing.T, n *node) *agent {
	t.Helper()
	s, err := agentSession(t, n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &agent{t, s}
}

func agentSession(t *testing.T, n *node) (*sdk.ClientSession, error) {
	c := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil)
	return c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: n.http.URL + "/mcp", HTTPClient: &http.Client{Transport: testkit.Bearer(own)}, MaxRetries: -1}, nil)
}

// call calls a tool and returns its structured answer.
func (a *agent) call(tool string, args map[string]any) map[string]any {
	a.t.Helper()
	r, err := a.session.CallTool(context.Background(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		a.t.Fatal(err)
	}
	raw, _ := json.Marshal(r.StructuredContent)
	var out map[string]any
	if r.IsError || json.Unmarshal(raw, &out) != nil {
		a.t.Fatalf("%s: %+v", tool, r.Content[0])
	}
	return out
}

func (m *machine) act(a ahp.Action) {
	m.t.Helper()
	if _, err := m.conn.Dispatch(m.t.Context(), m.uri, a); err != nil {
		m.t.Fatal(err)
	}
}

// Agents at every node get the same answers, with the same ids and cursors; and the page lists and shows the terminal at each.
func TestDoorsOfEveryNode(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	a, b := start(t, servers.URLs, host.Options{}), start(t, servers.URLs, host.Options{})
	m := &machine{t: t, id: "laptop", uri: lent}
	m.lend(a)
	m.act(ahp.TerminalCommandDetectionAvailable{})
	m.output("$ ")
	for _, id := range []string{"cmd-1", "cmd-2"} {
		m.act(ahp.TerminalCommandExecuted{CommandID: id, CommandLine: "make " + id, Timestamp: 1})
		m.output("made " + id + "\r\n")
		code := int64(len(id))
		m.act(ahp.TerminalCommandFinished{CommandID: id, ExitCode: &code})
		m.output("$ ")
	}
	m.act(ahp.TerminalTitleChanged{Title: "a title"})
	if err := m.conn.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	here, there := newAgent(t, a), newAgent(t, b)
	list := func(x *agent) (one map[string]any) {
		all, _ := x.call("list_terminals", nil)["terminals"].([]any)
		if len(all) == 1 {
			one, _ = all[0].(map[string]any)
		}
		return one
	}
	testkit.Eventually(t, patience, "the other node lists the terminal with its title", func() bool { return list(there)["title"] == "a title" })
	id, _ := list(here)["id"].(string)
	if id == "" || list(there)["id"] != id {
		t.Fatalf("listed as %v and %v", list(here), list(there))
	}
	for name, args := range map[string]map[string]any{
		"read_terminal": {"terminalId": id}, "wait_terminal": {"terminalId": id, "pattern": "made cmd-2", "since": 0},
	} {
		if diff := cmp.Diff(here.call(name, args), there.call(name, args)); diff != "" {
			t.Errorf("%s at the owner (-) and at the other node (+):\n%s", name, diff)
		}
	}
	waits := make(chan map[string]any, 1)
	go func() {
		waits <- there.call("wait_terminal", map[string]any{"terminalId": id, "pattern": "ready", "timeoutMs": 60_000})
	}()
	testkit.Eventually(t, patience, "the machine is told that somebody waits", func() bool { return m.watched() > 0 })
	m.output("ready\r\n")
	if got := <-waits; got["reason"] != "pattern" {
		t.Errorf("a wait at the other node: %v", got)
	}
	for _, n := range []*node{a, b} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.http.URL+"/terminals/"+id+".txt?tkn="+own, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(text), "made cmd-2") {
			t.Errorf("%s shows %q, %v", n.url, text, err)
		}
	}
	m.conn.Close()
	testkit.Eventually(t, patience, "the page of the other node shows that the machine is away", func() bool { return strings.Contains(firstEvent(t, b), `"state":"away"`) })
}

// firstEvent is the list as the page of a node gets it.
func firstEvent(t *testing.T, n *node) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.http.URL+"/events?tkn="+own, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		if list, ok := strings.CutPrefix(lines.Text(), "data:"); ok {
			return list
		}
	}
	return ""
}
