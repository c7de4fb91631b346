package cluster_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/ahp"
	"tether/events"
	"tether/host"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// agent is a session of an MCP client at a node.
type agent struct {
	t       *testing.T
	session *sdk.ClientSession
}

func newAgent(t *testing.T, n *node) *agent {
	t.Helper()
	s := must.Get(agentSession(t, n))(t)
	t.Cleanup(func() { s.Close() })
	return &agent{t, s}
}

func agentSession(t *testing.T, n *node) (*sdk.ClientSession, error) {
	c := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, nil)
	return c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: n.http.URL + "/mcp", HTTPClient: &http.Client{Transport: testkit.Bearer(own)}, MaxRetries: -1}, nil)
}

// call calls a tool and returns its structured answer, or its text where that is all
// there is.
func (a *agent) call(tool string, args map[string]any) map[string]any {
	a.t.Helper()
	r := must.Get(a.session.CallTool(context.Background(), &sdk.CallToolParams{Name: tool, Arguments: args}))(a.t)
	raw, _ := json.Marshal(r.StructuredContent)
	if said, ok := r.Content[0].(*sdk.TextContent); ok && r.StructuredContent == nil {
		raw = []byte(said.Text)
	}
	var out map[string]any
	if r.IsError || json.Unmarshal(raw, &out) != nil {
		a.t.Fatalf("%s: %+v", tool, r.Content[0])
	}
	return out
}

func (m *machine) act(a ahp.Action) {
	m.t.Helper()
	must.Get(m.conn.Dispatch(m.t.Context(), m.uri, a))(m.t)
}

// Agents at every node get the same answers, with the same ids and cursors; and the page
// lists and shows the terminal at each.
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
	must.Do(t, m.conn.Barrier(t.Context()))
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
		one, other := here.call(name, args), there.call(name, args)
		delete(one, "elapsedMs") // by the clock
		delete(other, "elapsedMs")
		if diff := cmp.Diff(one, other); diff != "" {
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
		r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, n.http.URL+"/terminals/"+id+".txt?tkn="+own, nil))(t)
		resp := must.Get(http.DefaultClient.Do(r))(t)
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || !strings.Contains(string(text), "made cmd-2") {
			t.Errorf("%s shows %q, %v", n.url, text, err)
		}
	}
	session, _ := postMCP(t, a, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	if _, text := postMCP(t, b, session, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"list_terminals","arguments":{}}}`); !strings.Contains(text, id) {
		t.Errorf("a session that began at another node is answered %s", text)
	}
	m.conn.Close()
	testkit.Eventually(t, patience, "the page of the other node shows that the machine is away", func() bool { return strings.Contains(firstEvent(t, b), `"state":"away"`) })
}

// postMCP sends a node a message of a session of MCP 2025-11-25, and returns the session,
// which may be new, and the answer.
func postMCP(t *testing.T, n *node, session, message string) (of, answer string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, n.http.URL+"/mcp", strings.NewReader(message)))(t)
	r.Header.Set("Authorization", "Bearer "+own)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
		r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	resp := must.Get(http.DefaultClient.Do(r))(t)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Errorf("status %d, %v: %s", resp.StatusCode, err, text)
	}
	return resp.Header.Get("Mcp-Session-Id"), string(text)
}

// heard are the events of input and readiness of which an operator is told at a node,
// until the test ends.
func heard(t *testing.T, n *node) func() []string {
	t.Helper()
	var mu sync.Mutex
	var all []string
	ctx, cancel := context.WithCancel(t.Context())
	var streams sync.WaitGroup
	for _, name := range []string{events.AwaitingInput, events.Ready} {
		active := make(chan struct{})
		streams.Go(func() {
			_ = n.Agents().Stream(ctx, rights.Principal{Role: rights.RoleAdmin}, &events.Request{Name: name}, listener{sync.OnceFunc(func() { close(active) }), func(e events.Event) {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, fmt.Sprint(e.Data["kind"], e.Data["state"], " ", e.Data["promptLine"], e.Data["why"]))
			}})
		})
		<-active
	}
	t.Cleanup(func() { cancel(); streams.Wait() })
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// listener implements events.Out.
type listener struct {
	active func()
	event  func(events.Event)
}

// Active implements events.Out.
func (l listener) Active(string, bool) error { l.active(); return nil }

// Heartbeat implements events.Out.
func (l listener) Heartbeat(string) error { return nil }

// Event implements events.Out.
func (l listener) Event(e events.Event) error { l.event(e); return nil }

// What a machine says of input and readiness is in lists, answers and events at every
// node: also behind the prompt that it is about, while nobody reads the terminal there,
// and as another question if it is.
func TestStateAtEveryNode(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	a, b := start(t, servers.URLs, host.Options{}), start(t, servers.URLs, host.Options{})
	m := &machine{t: t, id: "laptop", uri: lent}
	m.lend(a)
	there, at := newAgent(t, b), watch(t, b, lent)
	list := func() (one map[string]any) {
		all, _ := there.call("list_terminals", nil)["terminals"].([]any)
		if len(all) == 1 {
			one, _ = all[0].(map[string]any)
		}
		return one
	}
	testkit.Eventually(t, patience, "the other node lists the terminal", func() bool { return list() != nil })
	id, _ := list()["id"].(string)
	told := heard(t, b)
	branch := "" // of the checkout that was said, "" if that does not matter
	say := func(input, ready string) {
		t.Helper()
		branch = "of-" + ready
		p := ahp.NewState(lent, input, time.Now())
		p.SetReady(ready, time.Now(), "why")
		p.Checkout = vocab.Checkout{Repository: "/app", Worktree: "/app", Branch: branch}
		must.Do(t, m.conn.Peer().SendRaw(t.Context(), ahp.AppendState(nil, p)))
	}
	want := func(awaits, ready string) {
		t.Helper()
		testkit.Eventually(t, patience, "everybody there knows: "+awaits+" "+ready, func() bool {
			l := list()
			at.mu.Lock()
			defer at.mu.Unlock()
			if len(at.listed) != 1 || at.listed[0].Meta.Awaits.String() != awaits || at.listed[0].Meta.Ready.String() != ready {
				return false
			}
			read, _ := there.call("read_terminal", map[string]any{"terminalId": id})["awaits"].(string)
			listed, _ := l["awaits"].(string)
			shown, _ := l["ready"].(string)
			checkout, _ := l["checkout"].(map[string]any)
			return read == awaits && listed == awaits && shown == ready && (branch == "" || checkout["branch"] == branch)
		})
		if first := firstEvent(t, b); strings.Contains(first, `"awaits":"`+awaits+`"`) != (awaits != "") || strings.Contains(first, `"ready":"`+ready+`"`) != (ready != "") {
			t.Errorf("the page is told %s", first)
		}
	}
	m.output("name: ")
	say(ahp.InputAwaits, ahp.ReadyStarting)
	want(ahp.InputAwaits, ahp.ReadyStarting)
	m.output("me\r\nagain: ")
	say(ahp.InputAwaits, ahp.ReadyStarting)
	testkit.Eventually(t, patience, "there are two questions", func() bool { return len(told()) == 2 })
	say(ahp.InputSecret, ahp.ReadyYes)
	want(ahp.InputSecret, ahp.ReadyYes)
	testkit.Eventually(t, patience, "both are told", func() bool { return len(told()) == 4 })
	say(ahp.InputRunning, ahp.ReadyYes)
	want("", ahp.ReadyYes)
	m.conn.Close()
	want("", "") // nobody knows
	branch = ""  // the announcement has none
	m.lend(a)
	want("", ahp.ReadyYes)
	m.exit(0)
	want("", ahp.ReadyStopped)
	got := told()
	slices.Sort(got)
	if diff := cmp.Diff([]string{"<nil>ready <nil>why", "awaiting_input<nil> again:<nil>", "awaiting_input<nil> name:<nil>", "awaiting_secret<nil> <nil> <nil>"}, got); diff != "" {
		t.Errorf("the events there (+):\n%s", diff)
	}
	m.conn.Close()
}

// firstEvent is the list as the page of a node gets it.
func firstEvent(t *testing.T, n *node) string {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, n.http.URL+"/events?tkn="+own, nil))(t)
	resp := must.Get(http.DefaultClient.Do(r))(t)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if list, ok := strings.CutPrefix(lines.Text(), "data:"); ok {
			return list
		}
	}
	return ""
}
