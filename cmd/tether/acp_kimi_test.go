package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// fakeModel implements the part of the chat completions interface that Kimi Code needs:
// it requests one command, and accepts any result.
type fakeModel struct {
	command string
	mu      sync.Mutex
	results []string // the output of commands, as sent to the model
	tools   string   // that the model was offered last
}

func (m *fakeModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools []json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	m.mu.Lock()
	m.tools = fmt.Sprintf("%s", body.Tools)
	m.mu.Unlock()
	ran := false
	for _, said := range body.Messages {
		if said.Role == "tool" {
			ran = true
			m.mu.Lock()
			m.results = append(m.results, string(said.Content))
			m.mu.Unlock()
		}
	}
	delta, finish := object{"role": "assistant", "content": "Done."}, "stop"
	if !ran && len(body.Tools) > 0 {
		arguments, _ := json.Marshal(object{"command": m.command, "description": "a test"})
		delta, finish = object{"role": "assistant", "tool_calls": []any{object{"index": 0, "id": "call_1", "type": "function",
			"function": object{"name": "Bash", "arguments": string(arguments)}}}}, "tool_calls"
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, choice := range []object{{"index": 0, "delta": delta, "finish_reason": nil}, {"index": 0, "delta": object{}, "finish_reason": finish}} {
		chunk, _ := json.Marshal(object{"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "fake", "choices": []any{choice}})
		fmt.Fprintf(w, "data: %s\n\n", chunk)
	}
	io.WriteString(w, "data: [DONE]\n\n")
}

// kimi is Kimi Code as an ACP agent, with a model that wants a command run.
func kimi(t *testing.T, command string) (m *fakeModel, argv, env []string) {
	t.Helper()
	m = &fakeModel{command: command}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	argv, env = kimiProgram(t, t.TempDir(), server.URL)
	return m, append(argv, "acp"), env
}

// kimiProgram is Kimi Code, configured in a directory for the model at a URL.
func kimiProgram(t *testing.T, home, model string) (argv, env []string) {
	t.Helper()
	program := acpTool(t, "acp/node_modules/@moonshot-ai/kimi-code/dist/main.mjs")
	config := fmt.Sprintf("default_model = \"fake\"\n[providers.fake]\ntype = \"openai\"\nbase_url = \"%s/v1\"\napi_key = \"none\"\n"+
		"[models.fake]\nprovider = \"fake\"\nmodel = \"fake\"\nmax_context_size = 100000\n", model)
	must.Do(t, os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600))
	return []string{node(t), program}, []string{"KIMI_CODE_HOME=" + home, "HOME=" + home}
}

// TestACPKimi is a turn of a third-party agent: it asks its editor for permission, runs
// the command in the daemon, polls its output, and sends its model the result. The editor
// shows no terminals; in TestACPWalk it does.
func TestACPKimi(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Parallel()
	model, argv, env := kimi(t, "echo from kimi; sleep 0.6; pwd; exit 4")
	e := editAs(t, "", []string{"--as", "kimi"}, argv, env).opens(object{})
	e.call("session/prompt", prompt(e.session, "go on"))
	for !strings.Contains(e.seen(), "exit status 4") {
		e.next() // the end of the terminal may come after that of the turn
	}
	if !strings.Contains(e.seen(), "from kimi") || !strings.Contains(e.asked, "echo from kimi") {
		t.Errorf("the editor was asked %s, and sees\n%s", e.asked, e.seen())
	}
	model.mu.Lock()
	told := strings.Join(model.results, "\n")
	model.mu.Unlock()
	if !strings.Contains(told, `from kimi\n`+e.work+`\n`) || !strings.Contains(told, "exit code: 4") {
		t.Errorf("the model was told %s", told)
	}
	l, err := e.client.List(t.Context())
	if err != nil || len(l.Terminals) != 1 || l.Terminals[0].Owner != "agent kimi" || l.Terminals[0].Exit.Code != 4 {
		t.Errorf("listed: %+v, %v", l, err)
	}
	if status := e.leaves(); status != 0 || strings.Contains(e.stderr.String(), "itself") {
		t.Errorf("exit status %d: %s", status, e.stderr.String())
	}
}

// Kimi Code starts tether's MCP server from the file to which setup adds it, and offers
// its tools to the model.
func TestKimiKnowsTetherAfterSetup(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	model, argv, env := kimi(t, "true")
	agentHome(t, nil)
	t.Setenv("KIMI_CODE_HOME", strings.TrimPrefix(env[0], "KIMI_CODE_HOME="))
	if out, status := command(t, "setup", "agents", "kimi", "--yes"); status != 0 {
		t.Fatalf("setup: %d %s", status, out)
	}
	e := editAs(t, "", []string{"--as", "kimi"}, argv, env).opens(object{})
	e.call("session/prompt", prompt(e.session, "go on"))
	model.mu.Lock()
	defer model.mu.Unlock()
	if !strings.Contains(model.tools, "mcp__tether__list_terminals") {
		t.Errorf("the model was offered %.2000s", model.tools)
	}
}
