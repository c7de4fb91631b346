package main

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// wakingModel implements the part of two model APIs that agents need: Messages and Chat
// Completions. It starts a command in the background and ends its turn. When the program
// begins the next turn by itself, it reads the file with the command's output, and ends
// that turn, too.
type wakingModel struct {
	path   string // of the API
	answer func(w http.ResponseWriter, tool string, input object)
	watch  object // the input of the Bash tool, less the command
	member string // of the Read tool's input: it holds the file's path

	mu    sync.Mutex
	rest  bool   // the first turn has ended
	woken int    // turns that the program has begun by itself
	said  string // all that the model was shown last
	done  bool   // the second turn has ended
}

// outputFile is where a program keeps a background command's output; its notice of the
// command's end says so.
var outputFile = regexp.MustCompile(`<output-file(?:>| path=")([^<"]+)`)

// ServeHTTP implements http.Handler.
func (m *wakingModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools []json.RawMessage
	}
	text, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(text, &body)
	}
	if err != nil || r.URL.Path != m.path || len(body.Messages) == 0 || len(body.Tools) == 0 {
		http.NotFound(w, r)
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
	m.said = said
	switch {
	case !strings.Contains(string(text), "call_Bash"):
		m.answer(w, "Bash", m.watch)
	case len(notices) == 0:
		m.rest = true
		m.answer(w, "", nil)
	case !strings.Contains(string(text), "call_Read"):
		m.answer(w, "Read", object{m.member: notices[0][1]})
	default:
		m.done = true
		m.answer(w, "", nil)
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

// messagesAnswer answers with a call of a tool, or with the end of the turn if tool is
// "".
func messagesAnswer(w http.ResponseWriter, tool string, input object) {
	w.Header().Set("Content-Type", "text/event-stream")
	event := func(kind string, members object) {
		members["type"] = kind
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, asJSON(members))
	}
	start, delta, stop := object{"type": "text", "text": ""}, object{"type": "text_delta", "text": "Done."}, "end_turn"
	if tool != "" {
		start = object{"type": "tool_use", "id": "call_" + tool + "_" + rand.Text(), "name": tool, "input": object{}}
		delta, stop = object{"type": "input_json_delta", "partial_json": asJSON(input)}, "tool_use"
	}
	usage := object{"input_tokens": 1, "output_tokens": 1}
	event("message_start", object{"message": object{"id": "msg_1", "type": "message", "role": "assistant", "model": "x", "content": []any{}, "usage": usage}})
	event("content_block_start", object{"index": 0, "content_block": start})
	event("content_block_delta", object{"index": 0, "delta": delta})
	event("content_block_stop", object{"index": 0})
	event("message_delta", object{"delta": object{"stop_reason": stop}, "usage": usage})
	event("message_stop", object{})
}

// TestAgentsAreWoken follows docs/AGENTS.md with the real programs: their models watch a
// terminal with tether events in the background and end their turns. When the server in
// the terminal breaks, each program begins the next turn by itself, once, and its model
// reads the line.
func TestAgentsAreWoken(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	chat := func(w http.ResponseWriter, tool string, input object) {
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range chatAnswer(tool, "", asJSON(input)) {
			fmt.Fprintf(w, "data: %s\n\n", asJSON(event))
		}
		io.WriteString(w, "data: [DONE]\n\n")
	}
	for _, agent := range []struct {
		name  string
		model *wakingModel
		start func(t *testing.T, own, model string) (argv, env []string)
	}{
		{"claude", &wakingModel{path: "/v1/messages", answer: messagesAnswer, watch: object{"run_in_background": true}, member: "file_path"}, func(t *testing.T, own, model string) (argv, env []string) {
			program := acpTool(t, "agents/node_modules/@anthropic-ai/claude-code/bin/claude.exe")
			return []string{program, "-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose", "--allowedTools", "Bash,Read"},
				[]string{"ANTHROPIC_BASE_URL=" + model, "ANTHROPIC_API_KEY=none", "IS_SANDBOX=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1"}
		}},
		{"kimi", &wakingModel{path: "/v1/chat/completions", answer: chat, watch: object{"run_in_background": true, "disable_timeout": true}, member: "path"}, func(t *testing.T, own, model string) (argv, env []string) {
			argv, env = kimiProgram(t, own, model)
			return append(argv, "-p", "watch the dev server", "--output-format", "stream-json"), env
		}},
	} {
		t.Run(agent.name, func(t *testing.T) {
			home, own, model := newHome(t), t.TempDir(), agent.model
			server := httptest.NewServer(model)
			t.Cleanup(server.Close)
			argv, env := agent.start(t, own, server.URL)
			trigger := filepath.Join(own, "break")
			command(t, "run", "--detach", "--name", "web", "--", "sh", "-c", "echo ready; while [ ! -e "+trigger+" ]; do sleep 0.05; done; echo 'fine again'; echo 'error: the port is taken'; exec sleep 600")
			command(t, "wait", "web", "--pattern", "ready")
			model.watch["description"] = "watch the dev server"
			model.watch["command"] = "tether events web --pattern error --follow --count 1 --cursor-file " + filepath.Join(own, "cursor")
			c := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
			c.Dir = own
			c.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + own, "TETHER_HOME=" + home, allowRootVar + "=1"}, env...)
			in := must.Get(c.StdinPipe())(t)
			var out testkit.Output
			c.Stdout, c.Stderr = &out, &out
			must.Do(t, c.Start())
			ended := make(chan struct{})
			go func() { defer close(ended); _ = c.Wait() }()
			t.Cleanup(func() { c.Process.Kill(); <-ended })
			// Kimi Code has its prompt already, and reads nothing.
			_, _ = fmt.Fprintln(in, `{"type":"user","message":{"role":"user","content":"watch the dev server"}}`)
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
			must.Do(t, os.WriteFile(trigger, nil, 0o600))
			reached("the second turn to end", func() bool { return model.done })
			// Nothing runs any more, so that the program ends where it is asked nothing
			// else.
			in.Close()
			select {
			case <-ended:
			case <-time.After(testkit.Patience):
				t.Fatalf("the program does not end; it printed %s", out.String())
			}
			model.mu.Lock()
			defer model.mu.Unlock()
			if model.woken != 1 || !strings.Contains(model.said, "web: error: the port is taken") || strings.Contains(model.said, "fine again") {
				t.Errorf("woken %d times, and shown %q; the program printed %s", model.woken, model.said, out.String())
			}
		})
	}
}
