package host_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/ahp"
	"tether/host"
	"tether/host/rights"
	"tether/host/sessions"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

func toolNames(t *testing.T, s *sdk.ClientSession) (names []string) {
	t.Helper()
	tools := must.Get(s.ListTools(t.Context(), nil))(t)
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

// An operator finds the tools of the machines at the MCP door, is told when there are
// others, and calls one.
func TestOperatorCallsAMachine(t *testing.T) {
	for name, connect := range map[string]dialer{"HTTP": overHTTP, "lines": overLines} {
		t.Run(name, func(t *testing.T) {
			var audited auditLog
			_, url := serve(t, host.Options{Sessions: true, Access: newUsers("machine-lap.top", "operator-bot"), Audit: audited.add})
			changed := make(chan struct{}, 100)
			agent := must.Get(connect(t, url, "operator-bot", &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
				changed <- struct{}{}
			}}))(t)
			if names := toolNames(t, agent); len(names) != 9 {
				t.Errorf("before a machine is there: %v", names)
			}
			laptop := as(t, url, "machine-lap.top", "laptop", viewOptions{resume: true})
			sessions := listSessions(t, laptop)
			if len(sessions) != 1 || sessions[0].Title != "agent bot" {
				t.Fatalf("the machine is shown %+v", sessions)
			}
			uri := sessions[0].Resource
			testkit.Eventually(t, patience, "the agent is told of other tools", func() bool { // it listens in its own time
				laptop.join(uri, "walk")
				laptop.join(uri, "run", "list_terminals")
				return len(changed) > 0
			})
			want := []string{"compare_runs", "fetch_page", "lap-top__list_terminals", "lap-top__run", "list_runs", "list_terminals", "problems", "read_terminal", "search_runs", "verdict", "wait_terminal"}
			check.Equal(t, "tools", want, toolNames(t, agent))
			answered := make(chan *sdk.CallToolResult, 1)
			go func() {
				r, err := agent.CallTool(t.Context(), &sdk.CallToolParams{Name: "lap-top__run", Arguments: map[string]any{"argv": []string{"make"}}})
				check.OK(t, err)
				answered <- r
			}()
			call := laptop.work(uri)
			if args, _ := call.ToolCall.Arguments(); string(args) != `{"argv":["make"]}` {
				t.Errorf("arguments %s", args)
			}
			laptop.create("ahp-terminal:/make")
			laptop.dispatch(call.Chat, done(call, ahp.TextContent("started"), ahp.TerminalContent("ahp-terminal:/make", "make", true)))
			r := <-answered
			text := r.Content[0].(*sdk.TextContent).Text
			if r.IsError || !strings.HasPrefix(text, "started\n[terminal pty-") || r.Meta["tether/untrusted"] != true {
				t.Errorf("answer %q, %+v", text, r)
			}
			var list []listed
			use(t, agent, "list_terminals", nil, &list)
			if len(list) != 1 || !strings.Contains(text, list[0].ID) {
				t.Errorf("the terminal in %q is none of %+v", text, list)
			}
			if !audited.has(rights.AuditCalled, "bot", "run") {
				t.Errorf("not in the record: %+v", audited.events)
			}
			laptop.dispatch(uri, ahp.SessionActiveClientRemoved{ClientID: "laptop"})
			<-changed
			testkit.Eventually(t, patience, "its tools are gone", func() bool { return len(toolNames(t, agent)) == 9 })
		})
	}
}

// Only operators and administrators are shown machines' tools, and only where there are
// sessions.
func TestWhoIsOfferedMachinesTools(t *testing.T) {
	for _, tt := range []struct {
		token    string
		sessions bool
		want     int
	}{
		{"operator-bot", true, 10}, {"admin-root", true, 10}, {"agent-bot", true, 9}, {"observer-ann", true, 9},
		{"operator-bot", false, 9}, {"admin-root", false, 9},
	} {
		t.Run(fmt.Sprintf("%s, sessions %v", tt.token, tt.sessions), func(t *testing.T) {
			_, url := serve(t, host.Options{Sessions: tt.sessions, Access: newUsers("machine-laptop", tt.token)})
			laptop := as(t, url, "machine-laptop", "laptop", viewOptions{})
			err := laptop.call(ahp.MethodCreateSession, ahp.CreateSessionParams{Channel: sessionURI,
				ActiveClient: &ahp.ActiveClient{ClientID: "laptop", Tools: []ahp.ToolDefinition{{Name: "run"}}}}, nil)
			if (err == nil) != tt.sessions {
				t.Fatalf("createSession: %v", err)
			}
			agent := must.Get(overHTTP(t, url, tt.token, nil))(t)
			if got := toolNames(t, agent); len(got) != tt.want {
				t.Errorf("offered %v, want %d", got, tt.want)
			}
		})
	}
}

// auditLog keeps a record.
type auditLog struct {
	mu     sync.Mutex
	events []rights.AuditEvent
}

func (l *auditLog) add(ev rights.AuditEvent) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, ev)
}

func (l *auditLog) has(kind, name, detail string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.ContainsFunc(l.events, func(ev rights.AuditEvent) bool { return ev.Type == kind && ev.Name == name && ev.Detail == detail })
}

// A session that was disposed of does not come back: the agent gets another one with the
// next thing it says, and none by leaving.
func TestADisposedSessionStaysAway(t *testing.T) {
	for name, connect := range map[string]dialer{"HTTP": overHTTP, "lines": overLines} {
		t.Run(name, func(t *testing.T) {
			h, url := serve(t, host.Options{Sessions: true, Access: newUsers("operator-bot", "admin-ann", "machine-laptop")})
			agent := must.Get(connect(t, url, "operator-bot", nil))(t)
			laptop := as(t, url, "machine-laptop", "laptop", viewOptions{})
			person := as(t, url, "admin-ann", "person", viewOptions{})
			first := listSessions(t, person)[0].Resource
			laptop.join(first, "run")
			testkit.Eventually(t, patience, "the machine's tool", func() bool { return len(toolNames(t, agent)) == 10 })
			dispose := func(uri string) {
				t.Helper()
				must.Do(t, person.call(ahp.MethodDisposeSession, ahp.DisposeSessionParams{Channel: uri}, nil))
			}
			dispose(first)
			if all := listSessions(t, person); len(all) != 0 {
				t.Errorf("right after the disposal: %+v", all)
			}
			if r, err := agent.CallTool(t.Context(), &sdk.CallToolParams{Name: "laptop__run"}); err == nil && !r.IsError {
				t.Errorf("a tool of the session that has ended answers %+v", r)
			}
			all := listSessions(t, person)
			if len(all) != 1 || all[0].Resource == first || all[0].Title != "agent bot" {
				t.Fatalf("after the agent has asked for something: %+v, before it was %s", all, first)
			}
			laptop.join(all[0].Resource, "run")
			testkit.Eventually(t, patience, "the machine's tool again", func() bool { return len(toolNames(t, agent)) == 10 })
			dispose(all[0].Resource)
			agent.Close() // over HTTP, a request
			if left := listSessions(t, person); len(left) != 0 {
				t.Errorf("an agent that has left has %+v", left)
			}
			if _, err := h.Session(first); err != sessions.ErrNoSession {
				t.Errorf("the first one: %v", err)
			}
		})
	}
}
