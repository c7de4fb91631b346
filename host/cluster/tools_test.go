package cluster_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// toolbox is a machine with one tool, which answers when it is told to.
type toolbox struct {
	t    *testing.T
	conn *client.Conn

	mu    sync.Mutex
	calls []ahp.InputRequest // it has been asked to run
	ended []string           // ids of requests that were taken back
}

func newToolbox(t *testing.T, n *node) *toolbox {
	t.Helper()
	b := &toolbox{t: t}
	var err error
	b.conn, err = client.Connect(t.Context(), client.Endpoint{URL: n.url, Token: own}, client.Options{ClientID: "workshop", Meta: ahp.NewClientMeta(), OnEnvelope: b.heard})
	must.Do(t, err)
	t.Cleanup(b.conn.Close)
	return b
}

func (b *toolbox) heard(v ahp.EnvelopeView) {
	a, err := ahp.DecodeAction(v.Action)
	if err != nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch a := a.(type) {
	case ahp.SessionInputNeededSet:
		b.calls = append(b.calls, a.Request)
	case ahp.SessionInputNeededRemoved:
		b.ended = append(b.ended, a.ID)
	}
}

// publish offers the tool in the one session that there is.
func (b *toolbox) publish() {
	b.t.Helper()
	var uri string
	testkit.Eventually(b.t, patience, "the agent has a session at the machine's node", func() bool {
		all, err := b.conn.ListSessions(b.t.Context(), ahp.ListSessionsParams{Channel: ahp.RootURI})
		if err == nil && len(all.Items) == 1 {
			uri = all.Items[0].Resource
		}
		return uri != ""
	})
	must.Get(b.conn.Subscribe(b.t.Context(), uri))(b.t)
	a := ahp.SessionActiveClientSet{ActiveClient: ahp.ActiveClient{ClientID: "workshop", Tools: []ahp.ToolDefinition{{Name: "run", InputSchema: []byte(`{"type":"object"}`)}}}}
	must.Get(b.conn.Dispatch(b.t.Context(), uri, a))(b.t)
}

// called waits for the call with that number and returns it.
func (b *toolbox) called(n int) (r ahp.InputRequest) {
	b.t.Helper()
	testkit.Eventually(b.t, patience, "the machine is called", func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.calls) < n {
			return false
		}
		r = b.calls[n-1]
		return true
	})
	return r
}

func (b *toolbox) answer(r ahp.InputRequest, text string) {
	b.t.Helper()
	done := ahp.ChatToolCallComplete{ToolCallRef: ahp.ToolCallRef{TurnID: r.TurnID, ToolCallID: r.ToolCall.ToolCallID}, Result: ahp.ToolResult{Success: true, Content: []ahp.ToolContent{ahp.TextContent(text)}}}
	must.Get(b.conn.Dispatch(b.t.Context(), r.Chat, done))(b.t)
}

// tools are the names of the tools that an agent is offered.
func (a *agent) tools() (names []string) {
	a.t.Helper()
	all := must.Get(a.session.ListTools(a.t.Context(), nil))(a.t)
	for _, one := range all.Tools {
		names = append(names, one.Name)
	}
	return names
}

// An operator's agent finds and calls the tools of a machine at another node: each call
// runs once, however long it takes, ends at the machine when the agent does not wait any
// more, and fails when the machine's node dies. The agent's session there ends with the
// agent's node.
func TestToolsOfMachinesAtOtherNodes(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	a, b := start(t, servers.URLs, host.Options{Sessions: true}), start(t, servers.URLs, host.Options{Sessions: true})
	machine := newToolbox(t, a)
	there := newAgent(t, b)
	machine.publish()
	testkit.Eventually(t, patience, "the agent is offered the tool", func() bool { return slices.Contains(there.tools(), "workshop__run") })
	type result struct {
		text   string
		failed bool
		err    error
	}
	call := func(ctx context.Context, args map[string]any) <-chan result {
		answered := make(chan result, 1)
		go func() {
			r, err := there.session.CallTool(ctx, &sdk.CallToolParams{Name: "workshop__run", Arguments: args})
			if err != nil {
				answered <- result{err: err}
				return
			}
			answered <- result{text: r.Content[0].(*sdk.TextContent).Text, failed: r.IsError}
		}()
		return answered
	}
	answered := call(t.Context(), map[string]any{"argv": "make"})
	first := machine.called(1)
	if args, _ := first.ToolCall.Arguments(); string(args) != `{"argv":"make"}` {
		t.Errorf("arguments %s", args)
	}
	time.AfterFunc(7*time.Second, func() { machine.answer(first, strings.Repeat("\x01", 40_000)) }) // longer than a question is held
	if r := <-answered; r.failed || r.err != nil || len(r.text) != 40_000 {
		t.Fatalf("the result has %d bytes: %.200q, %v, %v", len(r.text), r.text, r.failed, r.err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	answered = call(ctx, map[string]any{})
	second := machine.called(2)
	cancel()
	<-answered
	testkit.Eventually(t, patience, "the machine is told that nobody waits", func() bool {
		machine.mu.Lock()
		defer machine.mu.Unlock()
		return slices.Contains(machine.ended, second.ID)
	})
	answered = call(t.Context(), map[string]any{})
	machine.called(3)
	a.end()
	if r := <-answered; !r.failed || !strings.Contains(r.text, "not known whether") {
		t.Errorf("a call whose node dies: %+v", r)
	}
	testkit.Eventually(t, patience, "the tool is gone", func() bool { return !slices.Contains(there.tools(), "workshop__run") })
	if machine.mu.Lock(); len(machine.calls) != 3 {
		t.Errorf("the machine was called %d times", len(machine.calls))
	}
	machine.mu.Unlock()
	c := start(t, servers.URLs, host.Options{Sessions: true})
	machine = newToolbox(t, c)
	machine.publish()
	b.end()
	testkit.Eventually(t, patience, "the agent's session ends with its node", func() bool {
		all, err := machine.conn.ListSessions(t.Context(), ahp.ListSessionsParams{Channel: ahp.RootURI})
		return err == nil && len(all.Items) == 0
	})
	machine.conn.Close()
}
