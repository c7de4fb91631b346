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

// An agent that runs its commands itself is named in a notice, and its sessions get our MCP server. Sessions of other agents get it only if
// an option says so.
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
		{"gemini-cli", acp.ServerKnown, "session/new", `{"cwd":"/a", "mcpServers":[],"x":1.0}`, `{"cwd":"/a","mcpServers":[` + item + `],"x":1.0}`, "it gets tether's MCP server"},
		{"OpenCode", acp.ServerKnown, "session/load", `{"sessionId":"s","cwd":"/a","mcpServers":[ {"name":"a","command":"a","args":["]"],"env":[]} ]}`, `{"sessionId":"s","cwd":"/a","mcpServers":[ {"name":"a","command":"a","args":["]"],"env":[]},` + item + `]}`, "it gets"},
		{"@agentclientprotocol/codex-acp", acp.ServerKnown, "session/resume", `{"sessionId":"s"}`, `{"sessionId":"s","mcpServers":[` + item + `]}`, "codex-acp runs its commands itself"},
		{"gemini-cli", acp.ServerNever, "session/new", `{"cwd":"/a","mcpServers":[]}`, "", "--mcp=false"},
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
