package host_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/ahp"
	"tether/host"
	"tether/host/agents"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc/wsconn"
)

const patience = testkit.Patience

// overHTTP opens a session of a real MCP client at a host.
func overHTTP(t *testing.T, url, token string, o *sdk.ClientOptions) (*sdk.ClientSession, error) {
	t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, o)
	transport := &sdk.StreamableClientTransport{Endpoint: "http" + strings.TrimPrefix(url, "ws") + "/mcp", HTTPClient: &http.Client{Transport: testkit.Bearer(token)}, MaxRetries: -1}
	session, err := c.Connect(t.Context(), transport, nil)
	if err == nil {
		t.Cleanup(func() { session.Close() })
	}
	return session, err
}

// overLines opens one over a WebSocket of lines, as tether-host mcp does.
func overLines(t *testing.T, url, token string, o *sdk.ClientOptions) (*sdk.ClientSession, error) {
	t.Helper()
	conn, err := wsconn.Dial(t.Context(), url+"/mcp", wsconn.Options{ReadLimit: 16 << 20, HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
	if err != nil {
		return nil, err
	}
	lines := agents.NewLines(context.Background(), conn)
	c := sdk.NewClient(&sdk.Implementation{Name: "agent", Version: "1"}, o)
	session, err := c.Connect(t.Context(), &sdk.IOTransport{Reader: lines, Writer: struct{ io.WriteCloser }{lines}}, nil)
	if err == nil {
		t.Cleanup(func() { session.Close() })
	}
	return session, err
}

type dialer func(*testing.T, string, string, *sdk.ClientOptions) (*sdk.ClientSession, error)

// use calls a tool and decodes its answer.
func use(t *testing.T, s *sdk.ClientSession, tool string, args map[string]any, into any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	r, err := s.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil || r.IsError {
		t.Fatalf("%s %v: %v %+v", tool, args, err, r)
	}
	must.Do(t, json.Unmarshal([]byte(r.Content[0].(*sdk.TextContent).Text), into))
}

// listed is a part of the answer of list_terminals.
type listed struct {
	ID, Machine, Name, Cwd, Owner string
	Exited                        bool
	ExitCode                      int
}

// waited is a part of the answer of wait_terminal.
type waited struct {
	Reason, Line, History string
	Cursor                int64
	Exited                bool
	ExitCode              int
	Command               *struct {
		Line     string
		ExitCode *int
	}
}

func TestAgentWatchesADevServer(t *testing.T) {
	for name, connect := range map[string]dialer{"HTTP": overHTTP, "lines": overLines} {
		t.Run(name, func(t *testing.T) {
			_, url := serve(t, host.Options{Access: newUsers("machine-laptop", "agent-bot")})
			laptop := as(t, url, "machine-laptop", "c1", viewOptions{resume: true})
			const uri = "ahp-terminal:/dev"
			laptop.create(uri)
			updated := make(chan string, 100)
			agent := must.Get(connect(t, url, "agent-bot", &sdk.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) {
				updated <- r.Params.URI
			}}))(t)
			tools := must.Get(agent.ListTools(t.Context(), nil))(t)
			var names []string
			for _, tool := range tools.Tools {
				names = append(names, tool.Name)
			}
			if got := strings.Join(names, " "); got != "compare_runs fetch_page list_runs list_terminals problems read_terminal search_runs verdict wait_terminal" {
				t.Errorf("tools %s: want those that only read, and fetch_page", got)
			}
			var all []listed
			use(t, agent, "list_terminals", nil, &all)
			if len(all) != 1 || all[0].Machine != "laptop" || all[0].Name != "laptop/build" || all[0].Cwd != "/src" || all[0].Owner != "user" {
				t.Fatalf("listed %+v", all)
			}
			id := all[0].ID
			answers := make(chan waited, 1)
			go func() {
				var w waited
				use(t, agent, "wait_terminal", map[string]any{"terminalId": id, "pattern": "http://", "timeoutMs": 600000}, &w)
				answers <- w
			}()
			laptop.output(uri, "starting\r\n\x1b[32mready\x1b[0m at http://localhost:3000/\r\n", 0)
			w := <-answers
			if w.Reason != "pattern" || w.Line != "ready at http://localhost:3000/" {
				t.Errorf("waited for the URL: %+v", w)
			}
			must.Do(t, agent.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "terminal:///" + id}))
			one := int64(1)
			laptop.dispatch(uri, ahp.TerminalCommandDetectionAvailable{})
			laptop.dispatch(uri, ahp.TerminalCommandExecuted{CommandID: "1", CommandLine: "npm test", Timestamp: 1})
			laptop.output(uri, "1 failing\r\n", -1)
			laptop.dispatch(uri, ahp.TerminalCommandFinished{CommandID: "1", ExitCode: &one})
			laptop.ping()
			use(t, agent, "wait_terminal", map[string]any{"terminalId": id, "command": true, "since": w.Cursor}, &w)
			if w.Reason != "command" || w.Command == nil || w.Command.Line != "npm test" || *w.Command.ExitCode != 1 {
				t.Errorf("waited for the tests: %+v %+v", w, w.Command)
			}
			testkit.Eventually(t, patience, "a notification", func() bool { // the client subscribes in its own time
				laptop.output(uri, "tick\r\n", -1)
				return len(updated) > 0 && <-updated == "terminal:///"+id
			})
			var read struct {
				History  string
				Commands []struct{ Line string }
			}
			use(t, agent, "read_terminal", map[string]any{"terminalId": id, "grep": "fail"}, &read)
			if read.History != "1 failing\n" && read.History != "1 failing" || len(read.Commands) != 1 {
				t.Errorf("read %+v", read)
			}
			code := int64(137)
			laptop.dispatch(uri, ahp.TerminalExited{ExitCode: &code})
			laptop.ping()
			use(t, agent, "wait_terminal", map[string]any{"terminalId": id, "exit": true}, &w)
			if w.Reason != "exit" || w.ExitCode != 137 {
				t.Errorf("waited for the crash: %+v", w)
			}
		})
	}
}

// An agent has the terminals of all machines, including equal names, each with its own
// text, and continues reading each where it was.
func TestAgentSeesAllMachines(t *testing.T) {
	for name, connect := range map[string]dialer{"HTTP": overHTTP, "lines": overLines} {
		t.Run(name, func(t *testing.T) {
			_, url := serve(t, host.Options{Access: newUsers("machine-laptop", "machine-desktop", "agent-bot")})
			agent := must.Get(connect(t, url, "agent-bot", nil))(t)
			machines := map[string]*viewer{}
			for _, name := range []string{"laptop", "desktop"} {
				machines[name] = as(t, url, "machine-"+name, name+"-id", viewOptions{})
				machines[name].create("ahp-terminal:/dev-" + name)
				machines[name].output("ahp-terminal:/dev-"+name, "compiling\r\nthis is the "+name+"\r\n", -1)
				machines[name].ping()
			}
			var all []listed
			use(t, agent, "list_terminals", nil, &all)
			ids := map[string]string{}
			for _, one := range all {
				if one.Name != one.Machine+"/build" {
					t.Errorf("listed %+v", one)
				}
				ids[one.Machine] = one.ID
			}
			if len(all) != 2 || len(ids) != 2 {
				t.Fatalf("listed %+v", all)
			}
			machines["desktop"].dispatch("ahp-terminal:/dev-desktop", ahp.TerminalTitleChanged{Title: "vim"})
			machines["desktop"].ping()
			resources := must.Get(agent.ListResources(t.Context(), nil))(t)
			titles := map[string]string{}
			for _, r := range resources.Resources {
				titles[strings.TrimPrefix(r.URI, "terminal:///")] = r.Title
			}
			if titles[ids["laptop"]] != "laptop/build" || titles[ids["desktop"]] != "desktop/build: vim" || len(titles) != 2 {
				t.Errorf("the resources are called %v", titles)
			}
			several, err := agent.CallTool(t.Context(), &sdk.CallToolParams{Name: "read_terminal", Arguments: map[string]any{"terminalId": "build"}})
			if err != nil || !several.IsError || !strings.Contains(several.Content[0].(*sdk.TextContent).Text, `"build" matches 2 terminals: `) {
				t.Errorf("a name of two: %+v, %v", several, err)
			}
			for _, name := range []string{"laptop", "desktop"} {
				var r struct {
					History string
					Cursor  int64
				}
				use(t, agent, "read_terminal", map[string]any{"terminalId": name + "/build", "tail": 1}, &r)
				if r.History != "this is the "+name+"\n" {
					t.Errorf("the last line at the %s: %q", name, r.History)
				}
				machines[name].output("ahp-terminal:/dev-"+name, "äfter\r\n", -1)
				machines[name].ping()
				use(t, agent, "read_terminal", map[string]any{"terminalId": ids[name], "since": r.Cursor}, &r)
				if r.History != "äfter\n" {
					t.Errorf("read on at the %s: %q", name, r.History)
				}
				use(t, agent, "read_terminal", map[string]any{"terminalId": ids[name], "since": r.Cursor}, &r)
				if r.History != "" {
					t.Errorf("read on again at the %s: %q", name, r.History)
				}
			}
			waiting := make(chan waited, 1)
			go func() {
				var w waited
				use(t, agent, "wait_terminal", map[string]any{"terminalId": ids["laptop"], "pattern": "ready", "timeoutMs": 600000}, &w)
				waiting <- w
			}()
			machines["desktop"].output("ahp-terminal:/dev-desktop", "ready on the desktop\r\n", -1)
			machines["desktop"].ping()
			machines["laptop"].output("ahp-terminal:/dev-laptop", "ready on the laptop\r\n", -1)
			if w := <-waiting; w.Reason != "pattern" || w.Line != "ready on the laptop" {
				t.Errorf("it waited for the laptop: %+v", w)
			}
			machines["desktop"].close() // it cannot come back to its terminal
			testkit.Eventually(t, patience, "the laptop's alone are left", func() bool {
				use(t, agent, "list_terminals", nil, &all)
				return len(all) == 1 && all[0].Machine == "laptop"
			})
		})
	}
}

// A wait goes on while the machine has lost its connection, and ends as one for an exit
// does when it stays away.
func TestAgentWaitsForAMachineThatIsAway(t *testing.T) {
	for name, c := range map[string]struct {
		grace time.Duration
		back  bool
	}{"it comes back": {time.Hour, true}, "it stays away": {50 * time.Millisecond, false}} {
		t.Run(name, func(t *testing.T) {
			h, url := serve(t, host.Options{Grace: c.grace, Access: newUsers("machine-laptop", "agent-bot")})
			const uri = "ahp-terminal:/dev"
			laptop := as(t, url, "machine-laptop", "c1", viewOptions{resume: true})
			laptop.create(uri)
			laptop.output(uri, "starting\r\n", 0)
			laptop.ping()
			agent := must.Get(overHTTP(t, url, "agent-bot", nil))(t)
			var all []listed
			use(t, agent, "list_terminals", nil, &all)
			answers := make(chan waited, 1)
			go func() {
				var w waited
				use(t, agent, "wait_terminal", map[string]any{"terminalId": all[0].ID, "pattern": "ready", "timeoutMs": 600000}, &w)
				answers <- w
			}()
			testkit.Eventually(t, patience, "the agent waits", func() bool { return h.Awaited(uri) })
			laptop.close()
			if c.back {
				again := as(t, url, "machine-laptop", "c1", viewOptions{resume: true})
				again.create(uri)
				again.output(uri, "starting\r\nready at last\r\n", 0)
				if w := <-answers; w.Reason != "pattern" || w.Line != "ready at last" {
					t.Errorf("after the machine came back: %+v", w)
				}
				return
			}
			if w := <-answers; w.Reason != "exit" || !w.Exited || w.ExitCode != -1 {
				t.Errorf("after the machine was given up: %+v", w)
			}
		})
	}
}

func TestWhoMayUseTheAgentsDoor(t *testing.T) {
	users := newUsers("machine-laptop", "observer-ann", "agent-bot", "admin-root")
	_, url := serve(t, host.Options{Access: users})
	for token, want := range map[string]bool{"machine-laptop": false, "observer-ann": true, "agent-bot": true, "admin-root": true, "": false, "agent-other": false} {
		for name, connect := range map[string]dialer{"HTTP": overHTTP, "lines": overLines} {
			if _, err := connect(t, url, token, nil); (err == nil) != want {
				t.Errorf("%s with %q: %v, want in: %v", name, token, err, want)
			}
		}
	}
}

// A session of lines ends with the reason why the token has ended, which the agent's user
// is shown.
func TestARevokedAgentGetsTheReason(t *testing.T) {
	users := newUsers("agent-bot")
	_, url := serve(t, host.Options{Access: users})
	conn := must.Get(wsconn.Dial(t.Context(), url+"/mcp", wsconn.Options{HTTPHeader: http.Header{"Authorization": {"Bearer agent-bot"}}}))(t)
	defer conn.Close()
	users.ends["agent-bot"](errors.New("the token was revoked"))
	if _, err := conn.Recv(t.Context()); err == nil || !strings.Contains(err.Error(), "the token was revoked") {
		t.Errorf("it ends with %v", err)
	}
}

// Without sessions, a record of each call would push everything else out of the audit
// log, whose size is bounded.
func TestAnAgentWithoutSessionsIsRecordedOnce(t *testing.T) {
	var connected atomic.Int64
	users := newUsers("agent-bot", "agent-other")
	_, url := serve(t, host.Options{Access: users, Audit: func(ev rights.AuditEvent) {
		if ev.Type == rights.AuditConnected {
			connected.Add(1)
		}
	}})
	call := func(token, version string) {
		t.Helper()
		body := `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_terminals","arguments":{},"_meta":{` +
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
		if version < "2026" {
			body = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
		}
		req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http"+strings.TrimPrefix(url, "ws")+"/mcp", strings.NewReader(body)))(t)
		for k, v := range map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "application/json, text/event-stream",
			"Mcp-Protocol-Version": version, "Mcp-Method": "tools/call", "Mcp-Name": "list_terminals"} {
			req.Header.Set(k, v)
		}
		resp := must.Get(http.DefaultClient.Do(req))(t)
		defer resp.Body.Close()
		if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%v %d: %s", err, resp.StatusCode, text)
		}
	}
	for range 5 {
		call("agent-bot", "2026-07-28")
	}
	if n := connected.Load(); n != 1 {
		t.Errorf("5 calls are recorded %d times", n)
	}
	call("agent-other", "2026-07-28")
	call("agent-bot", "2025-11-25")
	call("agent-bot", "2025-11-25")
	if n := connected.Load(); n != 4 {
		t.Errorf("with another agent and two sessions, %d are recorded, want 4", n)
	}
}

func TestARevokedAgentIsCutOff(t *testing.T) {
	for name, connect := range map[string]dialer{"HTTP": overHTTP, "lines": overLines} {
		t.Run(name, func(t *testing.T) {
			users := newUsers("machine-laptop", "agent-bot")
			_, url := serve(t, host.Options{Access: users})
			laptop := as(t, url, "machine-laptop", "c1", viewOptions{})
			laptop.create("ahp-terminal:/a")
			agent := must.Get(connect(t, url, "agent-bot", nil))(t)
			var all []listed
			use(t, agent, "list_terminals", nil, &all)
			ended := make(chan error, 1)
			go func() {
				_, err := agent.CallTool(t.Context(), &sdk.CallToolParams{Name: "wait_terminal", Arguments: map[string]any{"terminalId": all[0].ID, "exit": true, "timeoutMs": 600000}})
				ended <- err
			}()
			users.ends["agent-bot"](io.ErrClosedPipe)
			select {
			case <-ended:
			case <-time.After(patience):
				t.Error("a wait of a revoked agent goes on")
			}
			testkit.Eventually(t, patience, "calls are refused", func() bool {
				_, err := agent.ListTools(t.Context(), nil)
				return err != nil
			})
		})
	}
}
