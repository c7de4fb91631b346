package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"tether/agent/localapi"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// A sitting is one command as a person runs it at a terminal: the output and input, in
// this order, and how it ends.
type sitting struct {
	line string   // without "tether"; split at blanks, $NAME is replaced
	do   []string // expected output; after "type:", input
	exit int
}

// sittings are all commands, in an order in which each has something to do.
var sittings = []sitting{
	{line: "version", do: []string{"tether "}},
	{line: "update", do: []string{"installed by hand"}},
	{line: "whoami", do: []string{"user: no agent has started"}},
	{line: "config path", do: []string{"config.toml"}},
	{line: "config keys", do: []string{"uplink.heartbeat"}},
	{line: "config check", do: []string{"is valid"}},
	{line: "config view", do: []string{"log_level"}},
	{line: "config edit", do: nil},
	{line: "pair --token-file $TOKEN $HOST", do: []string{"paired with local"}},
	{line: "host ls", do: []string{"local (default)"}},
	{line: "host rename local lab", do: nil},
	{line: "host use lab", do: nil},
	{line: "host tools lab off", do: []string{"may not use this machine's tools"}},
	{line: "host retry lab", do: []string{"lab is"}},
	{line: "login lab", do: []string{"nobody can log in at this host"}, exit: 1},
	{line: "logout lab", do: []string{"logged out of"}},
	{line: "run -d --name web --host lab -- does print:ready read print:more read read read", do: []string{"pty-"}},
	{line: "ls", do: []string{"web", "running", "lab"}},
	{line: "status", do: []string{"running for", "lab (default)"}},
	{line: "wait web --pattern ready", do: []string{"ready"}},
	{line: "read web", do: []string{"ready"}},
	{line: "read web --screen", do: []string{"ready"}},
	{line: "ports web", do: []string{"no program in this terminal listens"}},
	{line: "commands web", do: []string{"no commands reported"}},
	{line: "fetch web /", do: []string{"no program of"}, exit: 1},
	{line: "problems web", do: []string{"no problems recognised"}},
	{line: "runs web", do: []string{"running", "web"}},
	{line: "search --name web --timeout 30s zzz", do: []string{"no line matches"}},
	{line: "__complete diff w", do: []string{"web", "pty-"}},
	{line: "__complete read --run w", do: []string{"web", "pty-"}},
	{line: "diff none", do: []string{"none"}, exit: 7},
	{line: "verdict", do: nil},
	{line: "forget --before 7d", do: []string{"removed 0 runs"}},
	{line: "events web --pattern ready", do: []string{"web: ready"}},
	{line: "on web --pattern ready --once --cursor-file $FILE.cursor -- true", do: []string{"type:\x03"}, exit: 130},
	{line: "watch --wait lab web", do: []string{"ready", "type:\x03"}, exit: 130},
	{line: "share web", do: []string{"/s/#"}},
	{line: "shares", do: []string{"web"}},
	{line: "unshare web", do: []string{"ended the link"}},
	{line: "unlend web", do: []string{"is not shared"}},
	{line: "lend web --for 1h", do: []string{"shared with lab until"}},
	{line: "record web --all --output $FILE", do: []string{"Ctrl-C stops", "type:\x03"}},
	{line: "play $FILE"}, // it may have been ended before anything was recorded
	{line: "ui", do: []string{"web", "type:q"}},
	{line: "attach web", do: []string{"ready", "type:\r", "more", "type:~?", "~.", "type:\r~.", "reattach with"}},
	{line: "shell --private", do: []string{"type:echo in$((1+1))\r", "in2", "type:exit 3\r"}, exit: 3},
	{line: "down later", do: []string{"later"}},
	{line: "up later", do: []string{"later"}},
	{line: "restart later", do: []string{"later"}},
	{line: "env", do: []string{"PATH="}},
	{line: "approvals", do: []string{"no pending or active approvals"}},
	{line: "approve q-none", do: []string{"no such approval request"}, exit: 1},
	{line: "policy check -- echo hello", do: []string{"allow"}},
	{line: "sandbox -- true", do: []string{"has no sandbox"}, exit: 1},
	{line: "token create helper", do: []string{"tether_"}},
	{line: "token ls", do: []string{"helper"}},
	{line: "token show", do: []string{"tether_"}},
	{line: "token revoke helper", do: nil},
	{line: "notify add hook", do: []string{"URL:", "type:http://127.0.0.1:1/x\r", "kept the URL of hook"}},
	{line: "notify ls", do: []string{"hook", "json"}},
	{line: "__complete notify test h", do: []string{"hook", "desktop"}},
	{line: "notify test hook", do: []string{"cannot be reached"}, exit: 5},
	{line: "notify remove hook", do: []string{"forgot hook"}},
	{line: "audit -n 0", do: []string{"spawn"}},
	{line: "audit verify", do: []string{"intact"}},
	{line: "logs -n 100", do: []string{"info"}},
	{line: "setup agents nobody", do: []string{"unknown agent"}, exit: 2}, // it would ask, and write to this user's files
	{line: "setup terminal nobody", do: []string{"unknown terminal program"}, exit: 2},
	{line: "doctor", do: []string{"running, process"}},
	{line: "bugreport -o $REPORT", do: []string{".tar.gz"}},
	{line: "completion bash", do: []string{"complete"}},
	{line: "completion zsh", do: []string{"compdef"}},
	{line: "completion fish", do: []string{"complete"}},
	{line: "completion powershell", do: []string{"Register-ArgumentCompleter"}},
	{line: "mcp", do: []string{"type:\x04"}},
	{line: "acp -- does exit:4", do: nil, exit: 4},
	{line: "adopt --watch", do: []string{"no rule adopts"}},
	{line: "unadopt later", do: []string{"started this terminal itself"}, exit: 2},
	{line: "kill later", do: []string{"killed"}},
	{line: "unpair lab", do: []string{"forgot lab"}},
	{line: "host rm lab", do: []string{"no host"}, exit: 4},
	{line: "stop", do: nil},
	{line: "daemon", do: []string{"ready", "type:\x03"}},
}

// Every command, at a real terminal.
func TestEveryCommandAtATerminal(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	home := newHome(t)
	h := &testHost{}
	must.Do(t, h.start("canary-token"))
	defer h.stop()
	dir := t.TempDir()
	given := map[string]string{"TOKEN": filepath.Join(dir, "token"), "HOST": "ws://" + h.address, "FILE": filepath.Join(dir, "web.cast"), "REPORT": filepath.Join(dir, "r.tar.gz")}
	// The declared terminal is not lent: it starts while the host is paired and, if lent,
	// might keep the host from being renamed.
	for path, text := range map[string]string{
		given["TOKEN"]: "canary-token\n", filepath.Join(home, "config", "config.toml"): "[[terminal]]\nname = \"later\"\ncommand = [\"sleep\", \"1000\"]\nlend = []\n",
	} {
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	}
	for _, s := range sittings {
		t.Run(s.line, func(t *testing.T) {
			args := []string{"tether"}
			for _, word := range strings.Fields(s.line) {
				args = append(args, os.Expand(word, func(name string) string { return given[name] }))
			}
			p := sitAt(t, pty.Command{Path: "tether", Args: args, Env: append(os.Environ(), "TERM=xterm-256color", "SHELL=/bin/sh", "PS1=$ ", "EDITOR=true")})
			for _, what := range s.do {
				if keys, ok := strings.CutPrefix(what, "type:"); ok {
					p.types(keys)
				} else {
					p.sees(what)
				}
			}
			p.exits(s.exit)
		})
		if t.Failed() {
			break // the next ones build on it
		}
	}
}

// No command is missing above, except for those that change the machine: service.txtar
// has their refusals, make test-systemd the rest.
func TestEveryCommandIsKnown(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			walk(sub)
		}
		path := strings.TrimPrefix(c.CommandPath(), "tether ")
		if !c.Runnable() || c.Hidden || c.HasSubCommands() || path == "help" || strings.HasPrefix(path, "service ") {
			return
		}
		if !slices.ContainsFunc(sittings, func(s sitting) bool { return s.line == path || strings.HasPrefix(s.line, path+" ") }) {
			t.Errorf("nobody has sat at tether %s", path)
		}
	}
	walk(newRoot(newApp(os.Stdin, os.Stdout, os.Stderr)))
}

// For any command, unknown arguments and flags are a wrong command line, and nothing is
// done.
func TestWrongCommandLines(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	seen := 0
	var walk func(c *cobra.Command, path []string)
	walk = func(c *cobra.Command, path []string) {
		seen++
		many := slices.Repeat([]string{"x"}, 40)
		switch err := c.ValidateArgs(many); {
		case err == nil && !strings.Contains(c.Use, "…"):
			t.Errorf("tether %s takes %d arguments; its use is %q", strings.Join(path, " "), len(many), c.Use)
		case err != nil && exitStatus(t.Context(), err) != localapi.ExitUsage:
			t.Errorf("tether %s x x x…: exit status %d (%v), want %d", strings.Join(path, " "), exitStatus(t.Context(), err), err, localapi.ExitUsage)
		case err != nil && hintFor(err) == "":
			t.Errorf("tether %s x x x…: %v, and no hint", strings.Join(path, " "), err)
		}
		root := newRoot(a)
		root.SetArgs(append(slices.Clone(path), "--no-such-flag"))
		if err := root.ExecuteContext(t.Context()); err == nil || exitStatus(t.Context(), err) != localapi.ExitUsage {
			t.Errorf("tether %s --no-such-flag: exit status %d (%v), want %d", strings.Join(path, " "), exitStatus(t.Context(), err), err, localapi.ExitUsage)
		}
		for _, sub := range c.Commands() {
			walk(sub, append(slices.Clone(path), sub.Name()))
		}
	}
	walk(newRoot(a), nil)
	if seen < 60 {
		t.Errorf("only %d commands were looked at", seen)
	}
}
