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
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// plannedModel implements the part of the Responses API that Codex needs. It calls the
// tools of a plan, one after the other.
type plannedModel struct {
	plan []plannedCall

	mu      sync.Mutex
	answers []string // what the model is shown of each call
}

// plannedCall is a call of a tool.
type plannedCall struct{ tool, namespace, args string }

// ServeHTTP implements http.Handler.
func (m *plannedModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct{ Input []json.RawMessage }
	if !strings.HasSuffix(r.URL.Path, "/responses") || json.NewDecoder(r.Body).Decode(&body) != nil {
		http.NotFound(w, r)
		return
	}
	var answers []string
	for _, said := range body.Input {
		var one struct {
			Type   string
			Output json.RawMessage // a text, or parts
		}
		if json.Unmarshal(said, &one) == nil && one.Type == "function_call_output" {
			answers = append(answers, strings.ReplaceAll(string(one.Output), `\"`, `"`))
		}
	}
	m.mu.Lock()
	m.answers = answers
	m.mu.Unlock()
	var next plannedCall
	if len(answers) < len(m.plan) {
		next = m.plan[len(answers)]
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range responsesAnswer(next.tool, next.namespace, next.args) {
		if item, ok := event.(object)["item"].(object); ok && next.tool != "" {
			item["call_id"] = fmt.Sprintf("call_%d", len(answers))
		}
		data, _ := json.Marshal(event)
		fmt.Fprintf(w, "data: %s\n\n", data)
	}
}

// TestCodexRunsElsewhere follows docs/AGENTS.md with the real programs: Codex runs
// elsewhere, and the person has started codex exec-server here, at a terminal of theirs.
// Codex has tether's MCP server and its commands run here, and all of it counts as the
// agent, also at a terminal that Codex makes.
func TestCodexRunsElsewhere(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	tether := must.Get(exec.LookPath("tether"))(t)
	codex, node := acpTool(t, "agents/node_modules/.bin/codex"), node(t)
	home, here, elsewhere := newHome(t), t.TempDir(), t.TempDir()
	t.Setenv(tokenVar, "")
	t.Setenv("PATH", filepath.Dir(node)+":"+os.Getenv("PATH"))
	command(t, "run", "--detach", "--name", "web", "--", "sh", "-c", "echo 'error: the port is taken'; exec sleep 600")
	command(t, "wait", "web", "--pattern", "taken")

	server := sitAt(t, pty.Command{Path: "sh", Args: []string{"sh", "-c", `"$0" exec-server --listen ws://127.0.0.1:0; true`, codex},
		Env: append(os.Environ(), "CODEX_HOME="+here, "TERM=xterm"), Dir: here})
	var address string
	testkit.Eventually(t, patience, "codex exec-server listens", func() bool {
		address = strings.TrimSpace(regexp.MustCompile(`ws://127\.0\.0\.1:[0-9]+\s`).FindString(server.shown()))
		return address != ""
	})

	try := fmt.Sprintf(`%[1]s whoami; %[1]s token create other; echo "status $?"; tty`, tether) // its login shells may have another PATH
	model := &plannedModel{plan: []plannedCall{
		{"list_terminals", "mcp__tether", "{}"},
		{"read_terminal", "mcp__tether", `{"terminalId":"web"}`},
		{"exec_command", "", asJSON(object{"cmd": try, "yield_time_ms": 20_000})},
		{"exec_command", "", asJSON(object{"cmd": try, "tty": true, "yield_time_ms": 20_000})},
	}}
	web := httptest.NewServer(model)
	t.Cleanup(web.Close)
	for name, text := range map[string]string{
		"environments.toml": fmt.Sprintf("default = \"laptop\"\ninclude_local = false\n[[environments]]\nid = \"laptop\"\nurl = %q\n", address),
		"config.toml": fmt.Sprintf("model = \"m\"\nmodel_provider = \"scripted\"\n[model_providers.scripted]\nname = \"scripted\"\nbase_url = %q\nwire_api = \"responses\"\n"+
			"[mcp_servers.tether]\ncommand = %q\nargs = [\"mcp\", \"--as\", \"codex-cloud\"]\nenv = { TETHER_HOME = %q, %s = \"1\" }\nenvironment_id = \"laptop\"\ncwd = %q\nstartup_timeout_sec = 600\ntool_timeout_sec = 600\n",
			web.URL+"/v1", tether, home, allowRootVar, here),
	} {
		must.Do(t, os.WriteFile(filepath.Join(elsewhere, name), []byte(text), 0o600))
	}
	c := exec.CommandContext(t.Context(), codex, "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "look at my dev server")
	c.Dir = here // it has no directories elsewhere
	c.Env = []string{"PATH=" + filepath.Dir(node) + ":/usr/bin:/bin", "HOME=" + elsewhere, "CODEX_HOME=" + elsewhere}
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s\n%s", err, out, server.shown())
	}
	model.mu.Lock()
	defer model.mu.Unlock()
	wants := [][]string{{`"name":"web"`}, {"error: the port is taken"}, {"agent codex-cloud: ", "status 6", "not a tty"}, {"agent codex-cloud: ", "status 6", "/dev/"}}
	if len(model.answers) != len(wants) {
		t.Fatalf("%d answers: %q", len(model.answers), model.answers)
	}
	for i, want := range wants {
		for _, part := range want {
			if !strings.Contains(model.answers[i], part) {
				t.Errorf("call %d is answered %s, without %q", i, model.answers[i], part)
			}
		}
	}
}
