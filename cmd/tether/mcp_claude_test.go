package main

import (
	"cmp"
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tether/agenttools"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// scriptedClaude implements the part of the Messages API that Claude Code needs: it calls
// one tool, once with each input, then another one if there is one, and accepts any
// result.
type scriptedClaude struct {
	tool   string
	inputs []object
	then   string // without an input

	mu      sync.Mutex
	offered bool     // it could call the tool
	results []string // the tool's answers, as sent to the model
}

// ServeHTTP implements http.Handler.
func (m *scriptedClaude) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct{ Content json.RawMessage }
		Tools    []struct{ Name string }
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/messages" {
		http.NotFound(w, r)
		return
	}
	offered := false
	for _, tool := range body.Tools {
		offered = offered || tool.Name == m.tool
	}
	var results []string
	for _, said := range body.Messages {
		var parts []struct {
			Type    string
			Content json.RawMessage
		}
		_ = json.Unmarshal(said.Content, &parts) // or a string, which is no result
		for _, part := range parts {
			if part.Type == "tool_result" {
				results = append(results, string(part.Content))
			}
		}
	}
	m.mu.Lock()
	m.offered = m.offered || offered
	if len(results) > 0 {
		m.results = results
	}
	m.mu.Unlock()
	switch n := len(results); {
	case offered && n < len(m.inputs):
		messagesAnswer(w, m.tool, m.inputs[n])
	case offered && n == len(m.inputs) && m.then != "":
		messagesAnswer(w, m.then, object{})
	default:
		messagesAnswer(w, "", nil)
	}
}

// play has the real program run with the model until done says that its MCP servers have
// started: the program asks its model before a server of tools that starts slowly has
// answered. more is added to tether's entry in the program's configuration.
func (m *scriptedClaude) play(t *testing.T, home string, more object, done func() bool) {
	t.Helper()
	claude := acpTool(t, "agents/node_modules/@anthropic-ai/claude-code/bin/claude.exe")
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	tether := must.Get(exec.LookPath("tether"))(t)
	entry := object{"command": tether, "args": []string{"mcp", "--as", "claude"}, "env": object{"TETHER_HOME": home, allowRootVar: "1"}}
	maps.Copy(entry, more)
	own := t.TempDir()
	file := filepath.Join(own, "mcp.json")
	must.Do(t, os.WriteFile(file, []byte(asJSON(object{"mcpServers": object{"tether": entry}})), 0o600))
	for range 10 {
		c := exec.CommandContext(t.Context(), claude, "-p", "read it", "--mcp-config", file, "--strict-mcp-config", "--allowedTools", m.tool+","+cmp.Or(m.then, m.tool))
		c.Dir = own
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + own, "ANTHROPIC_BASE_URL=" + server.URL, "ANTHROPIC_API_KEY=none",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "ENABLE_TOOL_SEARCH=true"}
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if m.mu.Lock(); done() {
			m.mu.Unlock()
			return
		}
		m.mu.Unlock()
	}
	t.Fatalf("Claude Code never offered the tool to its model: %s", m.results)
}

// TestClaudeCodeShowsAllThatIsRead has the real program read 64 KB: it shows its model
// only the beginning of a long answer, unless the tool says how much is worth showing.
// The program defers tools, and offers read_terminal without a search. Then it lists the
// terminals, and is shown what listens outside of them.
func TestClaudeCodeShowsAllThatIsRead(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	home := newHome(t)
	command(t, "run", "--detach", "--name", "long", "--", "sh", "-c", "seq -f 'line %g of a long log' 5000; exec sleep 600")
	command(t, "wait", "long", "--pattern", "line 5000 of")
	outside := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(outside.Close)
	model := &scriptedClaude{tool: "mcp__tether__read_terminal", inputs: []object{{"terminalId": "long", "maxBytes": 64 << 10}}, then: "mcp__tether__list_terminals"}
	model.play(t, home, nil, func() bool { return model.offered })
	result := strings.Join(model.results, "")
	if len(result) < 64<<10 || !strings.Contains(result, "line 5000 of a long log") || strings.Contains(result, "too large") {
		t.Errorf("the model was shown %d bytes: %.300s…", len(result), result)
	}
	list := model.results[len(model.results)-1]
	for _, part := range []string{strconv.Itoa(outside.Listener.Addr().(*net.TCPAddr).Port), filepath.Base(os.Args[0]), must.Get(os.Getwd())(t), agenttools.UnseenNotice} {
		if !strings.Contains(list, part) {
			t.Errorf("the model was not shown %q: %.3000s", part, list)
		}
	}
}

// TestClaudeCodeFindsTools has the real program defer all of tether's tools, which the
// person can tell it to: what people ask for finds the right one before all others.
func TestClaudeCodeFindsTools(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	asked := []struct{ query, tool string }{
		{"compile errors", "problems"},
		{"what does my dev server print", "read_terminal"},
		{"is the server running", "list_terminals"},
		{"wait until the build has finished", "wait_terminal"},
	}
	model := &scriptedClaude{tool: "ToolSearch"}
	for _, a := range asked {
		model.inputs = append(model.inputs, object{"query": a.query, "max_results": 1})
	}
	model.play(t, newHome(t), object{"alwaysLoad": false}, func() bool {
		return strings.Contains(strings.Join(model.results, ""), "mcp__tether__")
	})
	if len(model.results) != len(asked) {
		t.Fatalf("of %d searches the program ran %d: %s", len(asked), len(model.results), model.results)
	}
	for i, a := range asked {
		if !strings.Contains(model.results[i], `"mcp__tether__`+a.tool+`"`) {
			t.Errorf("%q finds %s", a.query, model.results[i])
		}
	}
}
