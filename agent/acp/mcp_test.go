package acp_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/acp"
	"tether/internal/testkit"
)

// An agent that runs its commands itself is named in a notice, and its sessions get our
// MCP server. Sessions of other agents get it only if an option says so.
func TestServerForAgents(t *testing.T) {
	const item = `{"name":"tether","command":"/bin/tether","args":["mcp"],"env":[]}`
	server := &acp.MCPServer{Name: "tether", Command: "/bin/tether", Args: []string{"mcp"}, Env: []acp.EnvVar{}}
	for _, c := range []struct {
		agent        string
		serve        acp.Server
		method       string
		params, want string // params sent and received; want "" means unchanged
		notice       string
	}{
		{"gemini-cli", acp.ServerKnown, "session/new", `{"cwd":"/a", "mcpServers":[],"x":1.0}`, `{"cwd":"/a","mcpServers":[` + item + `],"x":1.0}`,
			"gemini-cli runs its commands itself, not in tether's terminals, so it gets tether's MCP server, with which it can use them"},
		{"OpenCode", acp.ServerKnown, "session/load", `{"sessionId":"s","cwd":"/a","mcpServers":[ {"name":"a","command":"a","args":["]"],"env":[]} ]}`, `{"sessionId":"s","cwd":"/a","mcpServers":[ {"name":"a","command":"a","args":["]"],"env":[]},` + item + `]}`, "it gets"},
		{"@agentclientprotocol/codex-acp", acp.ServerKnown, "session/resume", `{"sessionId":"s"}`, `{"sessionId":"s","mcpServers":[` + item + `]}`, "codex-acp runs its commands itself"},
		{"gemini-cli", acp.ServerNever, "session/new", `{"cwd":"/a","mcpServers":[]}`, "", "and because of --mcp=false it does not get tether's MCP server"},
		{"qwen-code", acp.ServerKnown, "session/new", `{"cwd":"/a","mcpServers":[]}`, `{"cwd":"/a","mcpServers":[` + item + `]}`, "qwen-code runs its commands itself"},
		{"Kilo", acp.ServerKnown, "session/new", `{"cwd":"/a","mcpServers":[]}`, `{"cwd":"/a","mcpServers":[` + item + `]}`, "Kilo runs its commands itself"},
		{"Copilot", acp.ServerKnown, "session/new", `{"cwd":"/a","mcpServers":[]}`, "", "tether setup agents copilot adds tether's there"},
		{"cline", acp.ServerAlways, "session/new", `{"cwd":"/a","mcpServers":[]}`, `{"cwd":"/a","mcpServers":[` + item + `]}`, "tether setup agents cline adds tether's there"},
		{"gemini-cli", acp.ServerKnown, "session/new", `{"cwd":"/a","mcpServers":[{"name":"tether","command":"x","args":[],"env":[]}]}`, "", "it gets"},
		{"gemini-cli", acp.ServerKnown, "session/close", `{"sessionId":"s"}`, "", "it gets"},
		{"Kimi Code CLI", acp.ServerKnown, "session/new", `{"cwd":"/a","mcpServers":[]}`, "", ""},
		{"Kimi Code CLI", acp.ServerAlways, "session/new", `{"cwd":"/a","mcpServers":[]}`, `{"cwd":"/a","mcpServers":[` + item + `]}`, ""},
	} {
		t.Run(fmt.Sprint(c.agent, " ", c.serve, " ", c.method, " ", c.params), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := start(t, acp.Options{MCP: server, Serve: c.serve})
				w.editor.says(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"terminal":true}}}`)
				w.agent.hears()
				w.agent.says(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"` + c.agent + `","version":"1"}}}`)
				w.editor.hears()
				frame := func(params string) string {
					return `{"jsonrpc":"2.0","id":1,"method":"` + c.method + `","params":` + params + "}"
				}
				w.editor.says(frame(c.params))
				want := frame(c.want)
				if c.want == "" {
					want = frame(c.params)
				}
				if got := w.agent.hears(); got != want {
					t.Errorf("the agent hears %s\nwant %s", got, want)
				}
				synctest.Wait()
				if all := strings.Join(w.notices, "\n"); len(w.notices) > 1 || c.notice == "" && all != "" || !strings.Contains(all, c.notice) {
					t.Errorf("the person is told %q, want %q", all, c.notice)
				}
			})
		})
	}
}

// An agent that uses its editor's terminals gets our server if --mcp says so, and no
// notice.
func TestServerBesideTheEditorsTerminals(t *testing.T) {
	server := &acp.MCPServer{Name: "tether", Command: "/bin/tether", Args: []string{"mcp"}, Env: []acp.EnvVar{}}
	for serve, want := range map[acp.Server]bool{acp.ServerAlways: true, acp.ServerKnown: false, acp.ServerNever: false} {
		synctest.Test(t, func(t *testing.T) {
			w := start(t, acp.Options{Mode: acp.Auto, MCP: server, Serve: serve})
			w.editor.says(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"terminal":true}}}`)
			w.agent.hears()
			w.agent.says(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"gemini-cli","version":"1"}}}`)
			w.editor.hears()
			w.editor.says(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/a","mcpServers":[]}}`)
			if got := w.agent.hears(); strings.Contains(got, "/bin/tether") != want {
				t.Errorf("%s: the agent hears %s", serve, got)
			}
			synctest.Wait()
			if len(w.notices) != 0 {
				t.Errorf("%s: the person is told %q", serve, w.notices)
			}
		})
	}
}

// In version 2 of the protocol all agents run their commands themselves. Those that offer
// to start MCP servers get ours, in the form of that version; for others --mcp is refused
// with the reason.
func TestServerInVersion2(t *testing.T) {
	const (
		itself = "bob speaks version 2 of the protocol, in which agents run their commands themselves, not in tether's terminals"
		offers = `{"session":{"mcp":{"stdio":{}}}}`
		item   = `{"type":"stdio","name":"tether","command":"/bin/tether","args":["mcp"],"env":[]}`
	)
	server := &acp.MCPServer{Name: "tether", Command: "/bin/tether", Args: []string{"mcp"}, Env: []acp.EnvVar{}}
	for _, c := range []struct {
		mode          acp.Mode
		serve         acp.Server
		offer, answer string // the members of both sides of initialize
		servers       string // in session/new
		notice        string
	}{
		{"", acp.ServerAlways, `"capabilities":{}`, offers, item, itself + ", so it gets tether's MCP server, with which it can use them"},
		{"", acp.ServerKnown, `"capabilities":{}`, offers, item, itself + ", so it gets tether's MCP server, with which it can use them"},
		{"", acp.ServerKnown, `"clientCapabilities":{}`, offers, item, itself + ", so it gets tether's MCP server, with which it can use them"},
		{"", acp.ServerNever, `"capabilities":{}`, offers, "", itself + ", and because of --mcp=false it does not get tether's MCP server"},
		{"", acp.ServerAlways, `"capabilities":{}`, `{"session":{"mcp":{"http":{},"stdio":null}}}`, "",
			itself + ", and --mcp is refused, because the agent does not offer to start MCP servers (session.mcp.stdio)"},
		{"", acp.ServerKnown, `"capabilities":{}`, `{}`, "", itself + ", and does not offer to start MCP servers (session.mcp.stdio)"},
		{acp.Auto, acp.ServerAlways, `"clientCapabilities":{"terminal":true}`, offers, item, itself + ", so it gets tether's MCP server, with which it can use them"},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := start(t, acp.Options{Mode: c.mode, MCP: server, Serve: c.serve})
			w.editor.says(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"e","version":"1"},` + c.offer + `}}`)
			<-w.agent.lines
			answer := `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":2,"info":{"name":"bob","version":"1"},"capabilities":` + c.answer + `}}`
			w.agent.says(answer)
			if got := <-w.editor.lines; got != answer+"\n" {
				t.Errorf("the editor hears %s", got)
			}
			frame := func(servers string) string {
				return `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/a","mcpServers":[` + servers + `]}}` + "\n"
			}
			w.editor.says(strings.TrimSpace(frame("")))
			if got := <-w.agent.lines; got != frame(c.servers) {
				t.Errorf("%s, %s: the agent hears %s", c.serve, c.answer, got)
			}
			synctest.Wait()
			if got := strings.Join(w.notices, "\n"); got != c.notice {
				t.Errorf("%s, %s: the person is told %q, want %q", c.serve, c.answer, got, c.notice)
			}
		})
	}
}

// An agent that nobody knows is noticed by its tool calls: a command is done, and no
// terminal was asked for.
func TestUnknownAgentRunsCommandsItself(t *testing.T) {
	const (
		begins = `"sessionUpdate":"tool_call","toolCallId":"c1","title":"ls","kind":"execute","status":"pending"`
		done   = `"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"`
		failed = `"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"failed"`
		ran    = "bob has run a command itself, not in tether's terminals"
	)
	server := &acp.MCPServer{Name: "tether", Command: "/bin/tether", Args: []string{"mcp"}, Env: []acp.EnvVar{}}
	for name, c := range map[string]struct {
		serve  acp.Server
		first  func(w *world)
		calls  []string
		notice string
	}{
		"once":       {acp.ServerKnown, nil, []string{begins, done, begins, done}, ran + "; with --mcp it gets tether's MCP server, with which it can use them"},
		"has it":     {acp.ServerAlways, nil, []string{begins, done}, ran + ", so it gets tether's MCP server, with which it can use them"},
		"wants none": {acp.ServerNever, nil, []string{begins, done}, ran + ", and because of --mcp=false it does not get tether's MCP server"},
		"at once":    {acp.ServerKnown, nil, []string{strings.Replace(begins, "pending", "completed", 1)}, ran + "; with --mcp it gets tether's MCP server, with which it can use them"},
		"refused":    {acp.ServerKnown, nil, []string{begins, failed, done}, ""},
		"no command": {acp.ServerKnown, nil, []string{strings.Replace(begins, "execute", "read", 1), done}, ""},
		"a terminal": {acp.ServerKnown, func(w *world) {
			w.asks(`"create"`, "create", `"command":"ls"`) // it counts even if it is refused
			w.agent.hears()
		}, []string{begins, done}, ""},
		"replayed": {acp.ServerKnown, func(w *world) {
			w.editor.says(`{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"s","cwd":"/work","mcpServers":[]}}`)
			w.agent.hears()
		}, []string{begins, done}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := start(t, acp.Options{MCP: server, Serve: c.serve})
				w.editor.says(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"terminal":true}}}`)
				w.agent.hears()
				w.agent.says(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"bob","version":"1"}}}`)
				w.editor.hears()
				if c.first != nil {
					c.first(w)
				}
				for _, update := range c.calls {
					line := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{` + update + `}}}`
					w.agent.says(line)
					if got := <-w.editor.lines; got != line+"\n" {
						t.Errorf("the editor hears %s", got)
					}
				}
				synctest.Wait()
				if got := strings.Join(w.notices, "\n"); got != c.notice {
					t.Errorf("the person is told %q, want %q", got, c.notice)
				}
			})
		})
	}
}

// While a notice blocks, lines of the editor still pass.
func TestNoticeThatWaits(t *testing.T) {
	told, taken := make(chan struct{}), make(chan struct{})
	defer close(taken)
	w := start(t, acp.Options{Notice: func(string) { close(told); <-taken }})
	w.editor.says(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`)
	w.agent.hears()
	w.agent.says(`{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"opencode","version":"1"}}}`)
	<-told
	w.editor.says(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/a","mcpServers":[]}}`)
	select {
	case <-w.agent.lines:
	case <-time.After(testkit.Patience):
		t.Error("the agent hears nothing of the session")
	}
}
