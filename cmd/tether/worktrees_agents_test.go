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
	"slices"
	"strings"
	"sync"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/vocab"
)

// branchTester is a model that is asked to test the server of one branch. It lists the
// terminals, reads the one with that checkout, and requests the URL that its server
// prints with a command of its client.
type branchTester struct{ branch string }

// next returns the next step after the answers so far, "" when it is done.
func (b branchTester) next(answers []string) (step string, args object) {
	switch len(answers) {
	case 0:
		return "list_terminals", object{}
	case 1:
		return "read_terminal", object{"terminalId": b.terminal(answers[0])}
	case 2:
		return "shell", object{"command": "curl -s --max-time 60 " + regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+/`).FindString(answers[1])}
	}
	return "", nil
}

// terminal returns the id of the branch's terminal in a list, "" unless there is one.
func (b branchTester) terminal(list string) string {
	var all struct {
		Terminals []struct {
			ID       string
			Checkout vocab.Checkout
		}
	}
	if at := strings.Index(list, `{"`); at >= 0 {
		_ = json.NewDecoder(strings.NewReader(list[at:])).Decode(&all) // the client may add text around it
	}
	found := ""
	for _, t := range all.Terminals {
		if t.Checkout.Branch == b.branch {
			if found != "" {
				return ""
			}
			found = t.ID
		}
	}
	return found
}

// testedModel serves a branchTester to a client by one of the interfaces of models.
type testedModel struct {
	branchTester
	tools map[string]string // the client's names of the steps

	mu      sync.Mutex
	answers []string // of the steps, as the model was shown them
}

func (m *testedModel) take(answers []string) (tool string, args object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers = slices.Clone(answers)
	step, args := m.next(answers)
	return m.tools[step], args
}

// begun reports whether the client has run a step.
func (m *testedModel) begun() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.answers) > 0
}

// shownText returns the text of a result of a tool: a text, or parts with one each.
func shownText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct{ Text string }
	_ = json.Unmarshal(raw, &parts)
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// messages serves the Messages API.
func (m *testedModel) messages(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []struct{ Content json.RawMessage }
		Tools    []struct{ Name string }
	}
	if json.NewDecoder(r.Body).Decode(&body) != nil || r.URL.Path != "/v1/messages" {
		http.NotFound(w, r)
		return
	}
	var answers []string
	for _, said := range body.Messages {
		var parts []struct {
			Type    string
			Content json.RawMessage
		}
		_ = json.Unmarshal(said.Content, &parts) // or a string, which is no result
		for _, part := range parts {
			if part.Type == "tool_result" {
				answers = append(answers, shownText(part.Content))
			}
		}
	}
	tool, args := m.take(answers)
	for _, offered := range body.Tools {
		if offered.Name == tool {
			messagesAnswer(w, tool, args)
			return
		}
	}
	messagesAnswer(w, "", nil) // done, or the client has not connected to the host yet
}

// responses serves the Responses API.
func (m *testedModel) responses(w http.ResponseWriter, r *http.Request) {
	var body struct{ Input []json.RawMessage }
	if !strings.HasSuffix(r.URL.Path, "/responses") || json.NewDecoder(r.Body).Decode(&body) != nil {
		http.NotFound(w, r)
		return
	}
	var answers []string
	for _, said := range body.Input {
		var one struct {
			Type   string
			Output json.RawMessage
		}
		if json.Unmarshal(said, &one) == nil && one.Type == "function_call_output" {
			answers = append(answers, shownText(one.Output))
		}
	}
	tool, args := m.take(answers)
	namespace := "mcp__host"
	if tool == m.tools["shell"] && tool != "" {
		namespace, args = "", object{"cmd": args["command"], "yield_time_ms": 20_000}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range responsesAnswer(tool, namespace, asJSON(args)) {
		fmt.Fprintf(w, "data: %s\n\n", asJSON(event))
	}
}

// branchServer says the branch of its directory, and prints its URL and each request.
const branchServer = `
import {createServer} from "node:http";
import {execFileSync} from "node:child_process";
const server = createServer((request, answer) => {
  console.log(request.method + " " + request.url);
  answer.end("this is " + execFileSync("git", ["branch", "--show-current"]) + "\n");
}).listen(0, "127.0.0.1", () => console.log("listening at http://127.0.0.1:" + server.address().port + "/"));
`

// serveWorktrees makes a repository with two more work trees, and lends the server of
// each, all of one name, to the host. It returns the terminals by branch.
func serveWorktrees(t *testing.T) map[string]string {
	node, dir := node(t), t.TempDir()
	main := filepath.Join(dir, "shop")
	git := func(args ...string) {
		t.Helper()
		c := exec.Command("git", append([]string{"-C", main, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
		c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	must.Do(t, os.Mkdir(main, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(main, "server.mjs"), []byte(branchServer), 0o600))
	git("init", "-q", "-b", "main")
	git("add", ".")
	git("commit", "-q", "-m", "a server")
	git("worktree", "add", "-q", "-b", "feat/login", filepath.Join(dir, "login"))
	git("worktree", "add", "-q", "-b", "feat/pay", filepath.Join(dir, "pay"))
	ids := map[string]string{}
	for branch, at := range map[string]string{"main": main, "feat/login": filepath.Join(dir, "login"), "feat/pay": filepath.Join(dir, "pay")} {
		id, status := command(t, "run", "--detach", "--name", "web", "--host", "lab", "--cwd", at, "--", node, "server.mjs")
		if status != 0 {
			t.Fatalf("the server of %s does not start: status %d", branch, status)
		}
		ids[branch] = id
		if _, status := command(t, "wait", id, "--pattern", "listening at"); status != 0 {
			t.Fatalf("the server of %s does not listen", branch)
		}
	}
	return ids
}

// TestAgentsTellWorktreesApart has agents at a host, real programs whose models are
// scripted, test the server of one branch. Three work trees of one repository have one
// each, and nothing but the checkout tells their terminals apart. No other server gets a
// request.
func TestAgentsTellWorktreesApart(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	for _, program := range []string{"git", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	home := newHome(t)
	h := &testHost{}
	must.Do(t, h.start("secret"))
	t.Cleanup(h.stop)
	token := filepath.Join(home, "host-token")
	must.Do(t, os.WriteFile(token, []byte("secret"), 0o600))
	if _, status := command(t, "pair", "--name", "lab", "--token-file", token, "ws://"+h.address); status != 0 {
		t.Fatalf("not paired: status %d", status)
	}
	ids := serveWorktrees(t)
	door := "http://" + h.address + "/mcp"
	requests := func(branch string) int {
		out, _ := command(t, "read", ids[branch])
		return strings.Count(out, "GET /")
	}
	test := func(m *testedModel, run func()) {
		t.Helper()
		before := requests(m.branch)
		run()
		m.mu.Lock()
		defer m.mu.Unlock()
		if len(m.answers) != 3 || !strings.Contains(m.answers[2], "this is "+m.branch) {
			t.Errorf("the model was shown %q", m.answers)
		}
		testkit.Eventually(t, patience, "the request is printed", func() bool { return requests(m.branch) == before+1 })
	}
	t.Run("Claude Code", func(t *testing.T) {
		claude, own := acpTool(t, "agents/node_modules/@anthropic-ai/claude-code/bin/claude.exe"), t.TempDir()
		m := &testedModel{branchTester: branchTester{"feat/login"}, tools: map[string]string{
			"list_terminals": "mcp__host__list_terminals", "read_terminal": "mcp__host__read_terminal", "shell": "Bash"}}
		web := httptest.NewServer(http.HandlerFunc(m.messages))
		t.Cleanup(web.Close)
		file := filepath.Join(own, "mcp.json")
		must.Do(t, os.WriteFile(file, []byte(asJSON(object{"mcpServers": object{"host": object{"type": "http", "url": door, "headers": object{"Authorization": "Bearer secret"}}}})), 0o600))
		test(m, func() {
			for range 10 { // it asks its model before its MCP servers have answered
				c := exec.CommandContext(t.Context(), claude, "-p", "test the server of feat/login", "--mcp-config", file, "--strict-mcp-config", "--allowedTools", "mcp__host,Bash")
				c.Dir = own
				c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + own, "ANTHROPIC_BASE_URL=" + web.URL, "ANTHROPIC_API_KEY=none",
					"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "ENABLE_TOOL_SEARCH=false"}
				if out, err := c.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				if m.begun() {
					return
				}
			}
		})
	})
	t.Run("Codex", func(t *testing.T) {
		codex, own := acpTool(t, "agents/node_modules/.bin/codex"), t.TempDir()
		m := &testedModel{branchTester: branchTester{"feat/login"}, tools: map[string]string{
			"list_terminals": "list_terminals", "read_terminal": "read_terminal", "shell": "exec_command"}}
		web := httptest.NewServer(http.HandlerFunc(m.responses))
		t.Cleanup(web.Close)
		must.Do(t, os.WriteFile(filepath.Join(own, "config.toml"), fmt.Appendf(nil, "model = \"m\"\nmodel_provider = \"scripted\"\n[model_providers.scripted]\nname = \"scripted\"\nbase_url = %q\nwire_api = \"responses\"\n"+
			"[mcp_servers.host]\nurl = %q\nbearer_token_env_var = \"HOST_TOKEN\"\n", web.URL+"/v1", door), 0o600))
		test(m, func() {
			c := exec.CommandContext(t.Context(), codex, "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "test the server of feat/login")
			c.Dir = own
			c.Env = []string{"PATH=" + filepath.Dir(node(t)) + ":/usr/bin:/bin", "HOME=" + own, "CODEX_HOME=" + own, "HOST_TOKEN=secret"}
			if out, err := c.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		})
	})
	for _, other := range []string{"main", "feat/pay"} {
		if n := requests(other); n != 0 {
			t.Errorf("the server of %s got %d requests", other, n)
		}
	}
}
