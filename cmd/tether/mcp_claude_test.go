package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tether/internal/testkit"
)

// scriptedClaude implements the part of the Messages API that Claude Code needs: it requests one tool call, and accepts any result.
type scriptedClaude struct {
	tool  string
	input object

	mu      sync.Mutex
	offered bool   // it could call the tool
	result  string // the tool's answer, as sent to the model
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
	called, offered := false, false
	for _, tool := range body.Tools {
		offered = offered || tool.Name == m.tool
	}
	for _, said := range body.Messages {
		var parts []struct {
			Type    string
			Content json.RawMessage
		}
		_ = json.Unmarshal(said.Content, &parts) // or a string, which is no result
		for _, part := range parts {
			if part.Type == "tool_result" {
				called = true
				m.mu.Lock()
				m.result = string(part.Content)
				m.mu.Unlock()
			}
		}
	}
	m.mu.Lock()
	m.offered = m.offered || offered
	m.mu.Unlock()
	tool := m.tool
	if called || !offered {
		tool = ""
	}
	messagesAnswer(w, tool, m.input)
}

// TestClaudeCodeShowsAllThatIsRead has the real program read 64 KB: it shows its model only the beginning of a long answer, unless the tool
// says how much is worth showing.
func TestClaudeCodeShowsAllThatIsRead(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	claude := acpTool(t, "agents/node_modules/@anthropic-ai/claude-code/bin/claude.exe")
	home := newHome(t)
	command(t, "run", "--detach", "--name", "long", "--", "sh", "-c", "seq -f 'line %g of a long log' 5000; exec sleep 600")
	command(t, "wait", "long", "--pattern", "line 5000 of")
	model := &scriptedClaude{tool: "mcp__tether__read_terminal", input: object{"terminalId": "long", "maxBytes": 64 << 10}}
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	tether, err := exec.LookPath("tether")
	if err != nil {
		t.Fatal(err)
	}
	config, err := json.Marshal(object{"mcpServers": object{"tether": object{"command": tether, "args": []string{"mcp", "--as", "claude"},
		"env": object{"TETHER_HOME": home, allowRootVar: "1"}}}})
	if err != nil {
		t.Fatal(err)
	}
	own := t.TempDir()
	file := filepath.Join(own, "mcp.json")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	ask := func() (offered bool) {
		c := exec.CommandContext(t.Context(), claude, "-p", "read it", "--mcp-config", file, "--strict-mcp-config", "--allowedTools", model.tool)
		c.Dir = own
		c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + own, "ANTHROPIC_BASE_URL=" + server.URL, "ANTHROPIC_API_KEY=none",
			"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1",
			"ENABLE_TOOL_SEARCH=false"} // or the model must first search for tools of MCP servers
		var out strings.Builder
		c.Stdout, c.Stderr = io.Writer(&out), &out
		if err := c.Run(); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		model.mu.Lock()
		defer model.mu.Unlock()
		return model.offered
	}
	for try := 0; !ask(); try++ { // the program asks its model before a server of tools that starts slowly has answered
		if try == 10 {
			t.Fatal("Claude Code never offered the tool to its model")
		}
	}
	model.mu.Lock()
	defer model.mu.Unlock()
	if len(model.result) < 64<<10 || !strings.Contains(model.result, "line 5000 of a long log") || strings.Contains(model.result, "too large") {
		t.Errorf("the model was shown %d bytes: %.300s…", len(model.result), model.result)
	}
}
