package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"tether/internal/testkit"
)

// wakingClaude is a model that starts a command in the background and ends its turn. When the program begins the next turn by itself, it
// reads the command's output, and ends that turn, too.
type wakingClaude struct {
	command string

	mu    sync.Mutex
	rest  bool   // the first turn has ended
	woken int    // turns that the program has begun by itself
	read  string // the command's output, as shown to the model
	done  bool   // the second turn has ended
}

// outputFile is where the program keeps a background command's output.
var outputFile = regexp.MustCompile(`<output-file>([^<]+)</output-file>`)

// ServeHTTP implements http.Handler.
func (m *wakingClaude) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools []struct{ Name string }
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.URL.Path != "/v1/messages" || len(body.Messages) == 0 || len(body.Tools) == 0 {
		http.NotFound(w, r)
		return
	}
	all, err := json.Marshal(body.Messages)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var said string
	for _, one := range body.Messages {
		said += strings.Join(texts(one.Content), "\n") + "\n"
	}
	notices := outputFile.FindAllStringSubmatch(said, -1)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.woken = max(m.woken, len(notices))
	switch {
	case !strings.Contains(string(all), "toolu_watch"):
		answerClaude(w, "Bash", "toolu_watch", object{"command": m.command, "run_in_background": true, "description": "watch the dev server"})
	case len(notices) == 0:
		m.rest = true
		answerClaude(w, "", "", nil)
	case !strings.Contains(string(all), "toolu_read"):
		answerClaude(w, "Bash", "toolu_read", object{"command": "cat " + notices[0][1], "description": "read what it printed"})
	default:
		_, m.read, _ = strings.Cut(said, "running in background")
		m.done = true
		answerClaude(w, "", "", nil)
	}
}

// texts are the texts of a message, also of results of tools.
func texts(content json.RawMessage) (all []string) {
	var one string
	if json.Unmarshal(content, &one) == nil {
		return []string{one}
	}
	var parts []struct {
		Text    string
		Content json.RawMessage
	}
	_ = json.Unmarshal(content, &parts)
	for _, p := range parts {
		all = append(all, p.Text)
		if len(p.Content) > 0 {
			all = append(all, texts(p.Content)...)
		}
	}
	return all
}

// answerClaude answers with a call of a tool, or with the end of the turn if tool is "".
func answerClaude(w http.ResponseWriter, tool, id string, input object) {
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(kind string, members object) {
		members["type"] = kind
		data, _ := json.Marshal(members)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, data)
	}
	start, delta, stop := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": "Done."}, "end_turn"
	if tool != "" {
		text, _ := json.Marshal(input)
		start = object{"type": "tool_use", "id": id, "name": tool, "input": object{}}
		delta, stop = object{"type": "input_json_delta", "partial_json": string(text)}, "tool_use"
	}
	usage := object{"input_tokens": 1, "output_tokens": 1}
	event("message_start", object{"message": object{"id": "msg_1", "type": "message", "role": "assistant", "model": "x", "content": []any{}, "usage": usage}})
	event("content_block_start", object{"index": 0, "content_block": start})
	event("content_block_delta", object{"index": 0, "delta": delta})
	event("content_block_stop", object{"index": 0})
	event("message_delta", object{"delta": object{"stop_reason": stop}, "usage": usage})
	event("message_stop", object{})
}

// TestClaudeCodeIsWoken follows docs/AGENTS.md with the real program: its model watches a terminal with tether events in the background and ends its
// turn. When the server in the terminal breaks, the program begins the next turn by itself, once, and its model reads the line.
func TestClaudeCodeIsWoken(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	claude := acpTool(t, "agents/node_modules/@anthropic-ai/claude-code/bin/claude.exe")
	home := newHome(t)
	own := t.TempDir()
	trigger := filepath.Join(own, "break")
	command(t, "run", "--detach", "--name", "web", "--", "sh", "-c", "echo ready; while [ ! -e "+trigger+" ]; do sleep 0.05; done; echo 'fine again'; echo 'error: the port is taken'; exec sleep 600")
	command(t, "wait", "web", "--pattern", "ready")
	model := &wakingClaude{command: "tether events web --pattern error --follow --count 1 --cursor-file " + filepath.Join(own, "cursor")}
	server := httptest.NewServer(model)
	t.Cleanup(server.Close)
	c := exec.CommandContext(t.Context(), claude, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash")
	c.Dir = own
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + own, "ANTHROPIC_BASE_URL=" + server.URL, "ANTHROPIC_API_KEY=none", "IS_SANDBOX=1",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "TETHER_HOME=" + home, allowRootVar + "=1"}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(own, "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c.Stdout, c.Stderr = out, out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	t.Cleanup(func() { in.Close(); c.Process.Kill(); <-ended })
	if _, err := fmt.Fprintln(in, `{"type":"user","message":{"role":"user","content":"watch the dev server"}}`); err != nil {
		t.Fatal(err)
	}
	reached := func(what string, ok func() bool) {
		t.Helper()
		testkit.Eventually(t, testkit.Patience, what, func() bool {
			model.mu.Lock()
			defer model.mu.Unlock()
			return ok()
		})
	}
	reached("the first turn to end", func() bool { return model.rest })
	testkit.Eventually(t, testkit.Patience, "the events to be followed", func() bool {
		_, err := os.Stat(filepath.Join(own, "cursor"))
		return err == nil
	})
	if err := os.WriteFile(trigger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	reached("the second turn to end", func() bool { return model.done })
	model.mu.Lock()
	defer model.mu.Unlock()
	if model.woken != 1 || !strings.Contains(model.read, "web: error: the port is taken") || strings.Contains(model.read, "fine again") {
		t.Errorf("woken %d times, and shown %q", model.woken, model.read)
	}
}
