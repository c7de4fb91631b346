package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"tether/agent/policy"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// The table of programs knows each option of the commands that agents may use in their
// terminals, and whether it has a value. A new option is denied until somebody has
// entered it there.
func TestOptionsOfAgentsCommands(t *testing.T) {
	engine := must.Get(policy.New(policy.Options{}))(t)
	allowed := func(argv ...string) bool {
		return engine.Check(policy.Request{Door: policy.DoorMCP, Actor: term.Agent("bob"), Argv: argv, Cwd: t.TempDir()}).Effect == policy.Allow
	}
	root := newRoot(newApp(os.Stdin, os.Stdout, os.Stderr))
	for _, verb := range []string{"diff", "events", "fetch", "ls", "ports", "problems", "read", "runs", "search", "verdict", "wait", "whoami"} {
		c, _, err := root.Find([]string{verb})
		must.Do(t, err)
		c.InitDefaultHelpFlag()
		c.Flags().VisitAll(func(f *pflag.Flag) {
			spellings := []string{"--" + f.Name}
			if f.Shorthand != "" {
				spellings = append(spellings, "-"+f.Shorthand)
			}
			for _, option := range spellings {
				argv := []string{"tether", verb, option}
				valued := f.NoOptDefVal == ""
				if valued {
					argv = append(argv, "1")
				}
				if allowed(argv...) != (f.Name != "raw") {
					t.Errorf("%q: %v", argv, f.Name == "raw")
				}
				if f.Name != "raw" && allowed("tether", verb, option, "--raw") != valued {
					t.Errorf("%s of %s: the table says %v of its having a value", option, verb, !valued)
				}
			}
		})
	}
}

// What docs/AGENTS.md has agents run, but for tether on, passes in their terminals.
func TestRecipesPass(t *testing.T) {
	doc := must.Get(os.ReadFile("../../docs/AGENTS.md"))(t)
	engine := must.Get(policy.New(policy.Options{}))(t)
	lines, spans := []string{}, strings.FieldsFunc(string(doc), func(r rune) bool { return r == '`' || r == '\n' })
	for _, text := range spans {
		if text = strings.TrimSpace(text); strings.HasPrefix(text, "tether events ") || strings.HasPrefix(text, "tether wait ") || strings.HasPrefix(text, "tether read ") {
			lines = append(lines, text)
		}
	}
	if len(lines) < 8 {
		t.Fatalf("the page has %q", lines)
	}
	for _, line := range lines {
		r := policy.Request{Door: policy.DoorMCP, Actor: term.Agent("bob"), Line: line, Cwd: t.TempDir(), Background: true}
		if d := engine.Check(r); d.Effect != policy.Allow {
			t.Errorf("%s: %s by %s (%s)", line, d.Effect, d.Rule, d.Reason)
		}
	}
}

// An agent over MCP uses tether in terminals of its own, which find the daemon. What it
// reads there is what its tools show it: nothing private, nothing of another agent's, no
// secret. events resumes by its cursor file, and does not report what it prints itself.
func TestAgentsUseTetherInTheirTerminals(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	program := must.Get(exec.LookPath("tether"))(t)
	own, secret := t.TempDir(), "ghp_"+strings.Repeat("a1B2", 9)
	t.Setenv("HOME", own) // of the login, in whose PATH tether is
	for _, name := range []string{".profile", ".zprofile"} {
		must.Do(t, os.WriteFile(filepath.Join(own, name), []byte("PATH="+filepath.Dir(program)+":$PATH\n"), 0o600))
	}
	newHome(t)
	go1, go2 := filepath.Join(own, "go1"), filepath.Join(own, "go2")
	pause := func(file string) string { return "while [ ! -e " + file + " ]; do sleep 0.02; done; " }
	command(t, "run", "--detach", "--name", "web", "--", "sh", "-c", "echo ready "+secret+"; "+pause(go1)+"echo 'err''or: one'; "+pause(go2)+"echo 'err''or: two'; exec sleep 600")
	command(t, "run", "--detach", "--private", "--name", "mine", "--", "sh", "-c", "echo hidden; exec sleep 600")
	command(t, "wait", "web", "--pattern", "ready")
	bob, alice := mcpClient(t, "tether", "mcp", "--as", "bob"), mcpClient(t, "tether", "mcp", "--as", "alice")
	spawn := func(line string) (id string) {
		text, failed := tool(t, bob, "spawn_background_terminal", map[string]any{"cwd": own, "command": []string{"sh", "-c", line}})
		var m struct{ ID string }
		if err := json.Unmarshal([]byte(text), &m); failed || err != nil {
			t.Fatalf("%s: %s", line, text)
		}
		return m.ID
	}
	if text, failed := tool(t, alice, "spawn_background_terminal", map[string]any{"cwd": own, "command": []string{"sleep", "600"}}); failed {
		t.Fatal(text)
	}
	printed := func(id string) string {
		text, _ := tool(t, bob, "wait_terminal", map[string]any{"terminalId": id, "timeoutMs": patience.Milliseconds()})
		if !strings.Contains(text, `"reason":"exit"`) {
			t.Fatalf("it goes on: %s", text)
		}
		text, _ = tool(t, bob, "read_terminal", map[string]any{"terminalId": id})
		var m struct{ History string }
		must.Do(t, json.Unmarshal([]byte(text), &m))
		return m.History
	}

	watcher := spawn("for i in 1 2; do tether events --pattern 'error: ' --follow --count 1 --cursor-file .tether-web || exit; done")
	testkit.Eventually(t, patience, "the events to be followed", func() bool {
		_, err := os.Stat(filepath.Join(own, ".tether-web"))
		return err == nil
	})
	list, _ := tool(t, bob, "list_terminals", nil)
	got := printed(spawn("tether whoami; echo; tether ls --json > ls.json; tether wait web --pattern ready --timeout 1m; tether read web; tether read --digest web; tether problems web; " +
		"tether read mine; tether read mine --screen; tether wait mine --pattern hidden; tether events mine; tether ls"))
	for _, want := range []string{"agent bob: process ", "ready ghp_****", "[running", "no problems recognised", "mine: no such terminal"} {
		if !strings.Contains(got, want) {
			t.Errorf("without %q: %s", want, got)
		}
	}
	for _, not := range []string{secret, "hidden", "not found", "may not"} {
		if strings.Contains(got, not) {
			t.Errorf("with %q: %s", not, got)
		}
	}
	var ls struct{ Terminals []struct{ ID string } }
	data, err := os.ReadFile(filepath.Join(own, "ls.json"))
	if err == nil {
		err = json.Unmarshal(data, &ls)
	}
	must.Do(t, err)
	var shown []struct{ ID string }
	if err := json.Unmarshal([]byte(list), &shown); err != nil || len(shown) != 2 {
		t.Fatalf("%v: %s", err, list)
	}
	for _, one := range ls.Terminals { // and the terminal in which ls has run, which is newer
		if !slices.Contains(shown, one) && one.ID != ls.Terminals[0].ID {
			t.Errorf("tether ls shows %s, list_terminals %s", data, list)
		}
	}
	if len(ls.Terminals) != len(shown)+1 {
		t.Errorf("tether ls shows %s, list_terminals %s", data, list)
	}

	must.Do(t, os.WriteFile(go1, nil, 0o600))
	// The line that it prints is an event, for others.
	if out, status := command(t, "wait", watcher, "--pattern", "web: error: one"); status != 0 {
		t.Fatalf("%d, %s", status, out)
	}
	if out, status := command(t, "events", watcher, "--pattern", "error: one"); status != 0 || !strings.Contains(out, "web: error: one") {
		t.Fatalf("%d, %s", status, out)
	}
	must.Do(t, os.WriteFile(go2, nil, 0o600))
	if got := printed(watcher); got != "web: error: one\nweb: error: two\n" {
		t.Errorf("events printed %q", got)
	}
}
