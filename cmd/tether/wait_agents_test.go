package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"tether/agenttools"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// waitingModel implements the part of three model APIs that agents need: Chat
// Completions, Responses and Gemini's. It calls tools one after the other if they are
// offered, and ends its turn with the result of the last one.
type waitingModel struct {
	steps []step
	asked chan struct{} // closed once it has called wait_terminal
	once  sync.Once     // of asked

	mu      sync.Mutex
	calls   int
	results []string // the tools' answers, as sent to the model
}

// step is a call of a tool, whose name has no prefix of the program.
type step struct{ tool, args string }

// ServeHTTP implements http.Handler.
func (m *waitingModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages, Input, Contents []json.RawMessage
		Tools                     []json.RawMessage
	}
	if json.NewDecoder(r.Body).Decode(&body) != nil {
		http.NotFound(w, r)
		return
	}
	var answer func(tool, namespace, args string) []any
	switch {
	case strings.HasSuffix(r.URL.Path, "/chat/completions"):
		answer = chatAnswer
	case strings.HasSuffix(r.URL.Path, "/responses"):
		answer = responsesAnswer
	case strings.HasSuffix(r.URL.Path, ":streamGenerateContent"):
		answer = geminiAnswer
	default:
		http.NotFound(w, r)
		return
	}
	var results []string
	for _, said := range append(append(body.Messages, body.Input...), body.Contents...) {
		if text := string(said); strings.Contains(text, `"tool_call_id"`) || strings.Contains(text, `"function_call_output"`) || strings.Contains(text, `"functionResponse"`) {
			results = append(results, text)
		}
	}
	var tool, namespace, args string
	if n := len(results); n < len(m.steps) {
		args = m.steps[n].args
		tool, namespace = offeredTool(body.Tools, m.steps[n].tool)
	}
	m.mu.Lock()
	if len(results) > 0 {
		m.results = results
	}
	if tool != "" {
		if m.calls++; strings.HasSuffix(tool, "wait_terminal") {
			m.once.Do(func() { close(m.asked) })
		}
	}
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range answer(tool, namespace, args) {
		data, _ := json.Marshal(event)
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
}

// offeredTool returns the name under which a tool is offered, and its namespace where the
// API has those; "" if it is not offered.
func offeredTool(tools []json.RawMessage, tool string) (name, namespace string) {
	for _, raw := range tools {
		var t struct {
			Name                 string
			Function             struct{ Name string }
			FunctionDeclarations []struct{ Name string }
			Tools                []struct{ Name string }
		}
		_ = json.Unmarshal(raw, &t)
		for _, n := range append(t.FunctionDeclarations, t.Function) {
			if strings.HasSuffix(n.Name, tool) {
				return n.Name, ""
			}
		}
		for _, n := range t.Tools {
			if n.Name == tool {
				return n.Name, t.Name
			}
		}
	}
	return "", ""
}

func chatAnswer(tool, _, args string) []any {
	delta, why := object{"role": "assistant", "content": "Done."}, "stop"
	if tool != "" {
		call := object{"index": 0, "id": "call_" + tool + "_" + rand.Text(), "type": "function", "function": object{"name": tool, "arguments": args}}
		delta, why = object{"role": "assistant", "tool_calls": []any{call}}, "tool_calls"
	}
	chunk := func(delta object, why any) object {
		return object{"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": []any{object{"index": 0, "delta": delta, "finish_reason": why}}}
	}
	return []any{chunk(delta, nil), chunk(object{}, why)}
}

func responsesAnswer(tool, namespace, args string) []any {
	item := object{"type": "message", "id": "msg_1", "role": "assistant", "content": []any{object{"type": "output_text", "text": "Done."}}}
	if tool != "" {
		item = object{"type": "function_call", "id": "fc_" + rand.Text(), "call_id": "call_" + rand.Text(), "namespace": namespace, "name": tool, "arguments": args}
	}
	usage := object{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
	return []any{object{"type": "response.created", "response": object{"id": "r"}}, object{"type": "response.output_item.done", "output_index": 0, "item": item},
		object{"type": "response.completed", "response": object{"id": "r", "usage": usage}}}
}

func geminiAnswer(tool, _, args string) []any {
	part := object{"text": "Done."}
	if tool != "" {
		part = object{"functionCall": object{"name": tool, "args": json.RawMessage(args)}}
	}
	return []any{object{"candidates": []any{object{"index": 0, "finishReason": "STOP", "content": object{"role": "model", "parts": []any{part}}}}}}
}

// turnAgent is a real program whose model calls tools within one turn.
type turnAgent struct {
	name string
	file string // its configuration, in its home
	text func(model, home string) string
	args []string
}

func turnAgents(t *testing.T) []turnAgent {
	t.Helper()
	tether := must.Get(exec.LookPath("tether"))(t)
	return []turnAgent{
		{"opencode", "opencode.json", func(model, home string) string {
			return asJSON(object{"provider": object{"scripted": object{"npm": "@ai-sdk/openai-compatible", "options": object{"baseURL": model + "/v1", "apiKey": "none"},
				"models": object{"m": object{"tool_call": true}}}}, "model": "scripted/m", "small_model": "scripted/m", "autoupdate": false, "share": "disabled",
				"mcp": object{"tether": object{"type": "local", "command": []string{tether, "mcp", "--as", "opencode"}, "environment": object{"TETHER_HOME": home, allowRootVar: "1"}, "timeout": 600_000}}})
		}, []string{"run", "watch the dev server"}},
		{"codex", "config.toml", func(model, home string) string {
			return fmt.Sprintf("model = \"m\"\nmodel_provider = \"scripted\"\n[model_providers.scripted]\nname = \"scripted\"\nbase_url = %q\nwire_api = \"responses\"\n"+
				"[mcp_servers.tether]\ncommand = %q\nargs = [\"mcp\", \"--as\", \"codex\"]\nenv = { TETHER_HOME = %q, %s = \"1\" }\nstartup_timeout_sec = 600\ntool_timeout_sec = 600\n", model+"/v1", tether, home, allowRootVar)
		}, []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "watch the dev server"}},
		{"gemini", ".gemini/settings.json", func(_, home string) string {
			return asJSON(object{"mcpServers": object{"tether": object{"command": tether, "args": []string{"mcp", "--as", "gemini"}, "env": object{"TETHER_HOME": home, allowRootVar: "1"},
				"timeout": 600_000, "trust": true}}, "security": object{"auth": object{"selectedType": "gemini-api-key"}}, "privacy": object{"usageStatisticsEnabled": false}})
		}, []string{"-p", "watch the dev server", "-m", "gemini-2.5-flash", "--approval-mode", "yolo", "--skip-trust"}},
		{"copilot", ".copilot/mcp-config.json", func(_, home string) string {
			return asJSON(object{"mcpServers": object{"tether": object{"command": tether, "args": []string{"mcp", "--as", "copilot"}, "env": object{"TETHER_HOME": home, allowRootVar: "1"},
				"timeout": 600_000}}})
		}, []string{"-p", "watch the dev server", "--allow-all-tools"}},
		qwenAgent(tether, true),
	}
}

// qwenAgent is Qwen Code, which offers its model tools of MCP servers only after a search
// unless it loads them always.
func qwenAgent(tether string, load bool) turnAgent {
	return turnAgent{"qwen", ".qwen/settings.json", func(model, home string) string {
		return asJSON(object{"mcpServers": object{"tether": object{"command": tether, "args": []string{"mcp", "--as", "qwen"}, "env": object{"TETHER_HOME": home, allowRootVar: "1"},
			"timeout": 600_000, "trust": true, "alwaysLoadTools": load}}, "model": object{"name": "m"}, "privacy": object{"usageStatisticsEnabled": false},
			"security": object{"auth": object{"selectedType": "openai", "apiKey": "none", "baseUrl": model + "/v1"}}})
	}, []string{"-p", "watch the dev server", "--approval-mode", "yolo"}}
}

// start starts the program with its model in a new home. The channel has its end.
func (a turnAgent) start(t *testing.T, home, own string, model *waitingModel) (ended <-chan error, out *testkit.Output) {
	t.Helper()
	argv, node := append(agentProgram(t, a.name), a.args...), node(t)
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	file := filepath.Join(own, a.file)
	must.Do(t, os.MkdirAll(filepath.Dir(file), 0o700))
	must.Do(t, os.WriteFile(file, []byte(a.text(server.URL, home)), 0o600))
	c := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	c.Dir = own
	c.Env = []string{"PATH=" + filepath.Dir(node) + ":" + os.Getenv("PATH"), "HOME=" + own, "CODEX_HOME=" + own, "GEMINI_API_KEY=none", "GOOGLE_GEMINI_BASE_URL=" + server.URL,
		"COPILOT_OFFLINE=true", "COPILOT_MODEL=m", "COPILOT_PROVIDER_BASE_URL=" + server.URL + "/v1"}
	out = &testkit.Output{}
	c.Stdout, c.Stderr = out, out
	must.Do(t, c.Start())
	end := make(chan error, 1)
	go func() { end <- c.Wait() }()
	return end, out
}

// TestQwenCodeFindsTools has the real program search: what people ask for finds the right
// tool of tether before all others of tether.
func TestQwenCodeFindsTools(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	tether, err := exec.LookPath("tether")
	must.Do(t, err)
	asked := []struct{ query, tool string }{
		{"compile errors", "problems"},
		{"what does my dev server print", "read_terminal"},
		{"is the server running", "list_terminals"},
	}
	model := &waitingModel{}
	for _, a := range asked {
		model.steps = append(model.steps, step{"tool_search", asJSON(object{"query": a.query})})
	}
	ended, out := qwenAgent(tether, false).start(t, newHome(t), t.TempDir(), model)
	err = <-ended
	model.mu.Lock()
	defer model.mu.Unlock()
	if err != nil || len(model.results) != len(asked) {
		t.Fatalf("%v, %d searches: %s", err, len(model.results), out.String())
	}
	for i, a := range asked {
		_, first, _ := strings.Cut(model.results[i], "mcp__tether__")
		if !strings.HasPrefix(first, a.tool+`\"`) {
			t.Errorf("%q finds %.1000s", a.query, model.results[i])
		}
	}
}

// TestAgentsWaitWithinTheTurn follows docs/AGENTS.md with the real programs that nothing
// wakes between two turns: their models find the terminal and its error, call
// wait_terminal, which blocks until the file is repaired, and see the error gone. Before,
// they read a long log without further arguments, and are shown the whole answer, with
// the newest line. All of them do it at the same time, with one daemon.
func TestAgentsWaitWithinTheTurn(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	agents, home := turnAgents(t), newHome(t)
	command(t, "run", "--detach", "--name", "long", "--", "sh", "-c", "seq -f 'line %g of a long log' 5000; exec sleep 600")
	command(t, "wait", "long", "--pattern", "line 5000 of")
	outside := httptest.NewServer(http.NotFoundHandler()) // in the directory of the terminal, and in none
	t.Cleanup(outside.Close)
	t.Run("together", func(t *testing.T) {
		for _, agent := range agents {
			t.Run(agent.name, func(t *testing.T) {
				t.Parallel() // they wait most of the time
				agent.waits(t, home, outside.Listener.Addr().(*net.TCPAddr).Port)
			})
		}
	})
}

// waits has the program wait. A server listens on the port outside, in no terminal: the
// program's model is shown that wherever it looks for such a server.
func (a turnAgent) waits(t *testing.T, home string, outside int) {
	own, web := t.TempDir(), "web-"+a.name
	trigger := filepath.Join(own, "repaired")
	command(t, "run", "--detach", "--name", web, "--", "sh", "-c", `echo "src/a.ts(3,5): error TS2322: it is wrong"; echo "Found 1 error. Watching for file changes."
while [ ! -e `+trigger+` ]; do sleep 0.05; done; echo "File change detected. Starting incremental compilation..."; echo "Found 0 errors. Watching for file changes."; exec sleep 600`)
	command(t, "wait", web, "--pattern", "Found 1")
	problems := step{"problems", asJSON(object{"terminalId": web})}
	model := &waitingModel{asked: make(chan struct{}), steps: []step{
		{"read_terminal", `{"terminalId":"long"}`},
		{"list_terminals", `{}`},
		{"search_runs", `{"pattern":"no line has this"}`},
		{"spawn_background_terminal", asJSON(object{"cwd": own, "command": []string{"true"}, "port": strconv.Itoa(outside)})},
		problems,
		{"wait_terminal", asJSON(object{"terminalId": web, "pattern": "Found 0", "timeoutMs": 600_000})},
		problems,
	}}
	ended, out := a.start(t, home, own, model)
	select {
	case <-model.asked:
	case err := <-ended:
		t.Fatalf("it never called wait_terminal: %v, %s", err, out.String())
	}
	must.Do(t, os.WriteFile(trigger, nil, 0o600))
	if err := <-ended; err != nil {
		t.Errorf("%v: %s", err, out.String())
	}
	model.mu.Lock()
	defer model.mu.Unlock()
	dir := must.Get(os.Getwd())(t)
	for _, i := range []int{1, 2, 3} {
		for _, part := range []string{strconv.Itoa(outside), filepath.Base(os.Args[0]), dir, agenttools.UnseenNotice} {
			if i < len(model.results) && !strings.Contains(strings.ReplaceAll(model.results[i], `\`, ""), part) {
				t.Errorf("after %s the model is not shown %q, but %.3000q", model.steps[i].tool, part, model.results[i])
			}
		}
	}
	want := []string{"cursor", web, "matches", "is used by", "it is wrong", "Found 0 errors", `"errors":0`}
	if model.calls != len(want) || len(model.results) != len(want) {
		t.Fatalf("%d calls, and the model was shown %.2000q", model.calls, model.results)
	}
	last := 0
	for _, n := range regexp.MustCompile(`line (\d+) of a long log`).FindAllStringSubmatch(model.results[0], -1) {
		at, _ := strconv.Atoi(n[1])
		if last != 0 && at != last+1 {
			t.Errorf("line %d is followed by line %d", last, at)
		}
		last = at
	}
	if last != 5000 {
		t.Errorf("of a long log the model was shown %.300q", model.results[0])
	}
	for i, text := range want {
		if !strings.Contains(strings.ReplaceAll(model.results[i], `\`, ""), text) {
			t.Errorf("after %s the model was shown %.400q, without %q", model.steps[i].tool, model.results[i], text)
		}
	}
}

func asJSON(v any) string {
	data, _ := json.Marshal(v)
	return string(data)
}
