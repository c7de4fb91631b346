//go:build linux || darwin

package local_test

import (
	"slices"
	"strings"
	"testing"

	"tether/agent/local"
	"tether/agent/term"
	"tether/platform/proc"
)

// atShell is the lineage of a command that a program runs by sh -c at the person's
// terminal. The program's file is exe.
func atShell(exe string, argv ...string) []proc.Ancestor {
	return lineOf([]fake{
		{parent: 80, pid: 90, session: 50, group: 70, tty: 7, front: 70, argv: "tether|approve"},
		{parent: 70, pid: 80, session: 50, group: 70, tty: 7, front: 70, argv: "sh|-c|tether approve"},
		{parent: 50, pid: 70, session: 50, group: 70, tty: 7, front: 70, argv: strings.Join(argv, "|"), exe: exe},
		{parent: 40, pid: 50, session: 50, group: 50, tty: 7, front: 70, argv: "-zsh"},
	})
}

// Every row of the table of known agents is recognised in each form: as an executable, as
// the script of an interpreter and of a shell, and by the directories of its package. No
// known agent has the name of a program in another table.
func TestKnownAgents(t *testing.T) {
	rows := local.KnownAgents()
	if len(rows) < 40 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		name, programs, dirs, argument := row[0], strings.Fields(row[1]), strings.Fields(row[2]), row[3]
		if len(programs)+len(dirs) == 0 {
			t.Errorf("%s: nothing tells what it is", name)
		}
		var forms [][]string // file, arguments
		for _, p := range programs {
			p = strings.ReplaceAll(p, "*", "x")
			forms = append(forms, []string{"/tmp/x/" + p, p}, []string{"/tmp/x/other", "/tmp/x/" + p}, []string{"/usr/bin/node", "node", "--no-warnings", "/tmp/x/" + p + ".js"},
				[]string{"/usr/bin/python3.12", "python3", "-X", "dev", "/tmp/x/" + p + ".py"}, []string{"/usr/bin/dash", "/bin/sh", "/tmp/x/" + p})
			if local.InOtherTables(p) {
				t.Errorf("%s: %s is in another table, too", name, p)
			}
		}
		for _, dir := range dirs {
			forms = append(forms, []string{"/home/me/lib/" + dir + "/bin/thing", "thing"}, []string{"/usr/bin/node", "node", "/home/me/lib/" + dir + "/dist/cli.js"},
				[]string{"/home/me/lib/" + dir + "-linux-x64/vendor/thing", "thing"}, []string{"/usr/bin/node", "node", "lib/" + dir + "/cli.js"})
		}
		for _, form := range forms {
			argv := form[1:]
			if argument != "" {
				argv = append(slices.Clone(argv), argument)
			}
			c := local.FakeSystem{}.Identify(atShell(form[0], argv...), nil, nil, &local.Identity{})
			if who(c) != "agent "+name || !strings.Contains(c.Why, "known agent "+name) {
				t.Errorf("%q with file %s: %s because %s, want agent %s", argv, form[0], who(c), c.Why, name)
			}
			var mine local.Identity
			mine.Set([]string{name}, nil)
			if c := (local.FakeSystem{}).Identify(atShell(form[0], argv...), nil, nil, &mine); strings.HasPrefix(who(c), "agent "+name) {
				t.Errorf("%q with file %s is %s, although [identity] mine has it", argv, form[0], who(c))
			}
		}
	}
}

// Executors, by which agents that run elsewhere use this machine, are agents, and so is
// all that they start: in the person's pane, in a person's terminal of tether's, without
// a terminal, in a terminal that they have made, and when it has lost its parents.
func TestExecutors(t *testing.T) {
	const cursor, vscode = "/home/me/.local/share/cursor-agent/versions/2026.11.20/", "/home/me/.vscode/cli/servers/Stable-1/server/"
	for _, x := range []struct{ name, exe, argv string }{
		{"codex", "/usr/local/bin/codex", "codex|exec-server|--listen|ws://127.0.0.1:8765"},
		{"codex", "/x/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex", "codex|exec-server|--remote|https://x"},
		{"codex", "/usr/bin/node", "node|/usr/local/bin/codex|exec-server"},
		{"codex", "/usr/local/bin/codex-exec-server", "codex-exec-server"},
		{"codex", "/usr/local/bin/codex", "codex|app-server|--listen|ws://127.0.0.1:0"},
		{"codex", "/usr/local/bin/codex", "codex|remote-control|start"},
		{"claude", "/home/me/.local/share/claude/versions/2.1.332", "claude|remote-control|--spawn|worktree"},
		{"claude", "/x/node_modules/@anthropic-ai/claude-code/bin/claude.exe", "claude|self-hosted-runner|--base-dir|/workspace"},
		{"claude", "/x/node_modules/@anthropic-ai/claude-code/bin/claude.exe", "node_modules/.bin/claude|self-hosted-runner"},
		{"claude", "none", "/x/node_modules/@anthropic-ai/claude-code/bin/claude.exe|self-hosted-runner"},
		{"cursor-agent", cursor + "node", "agent|" + cursor + "index.js|worker|start"},
		{"cursor-agent", cursor + "node", "/home/me/.local/bin/agent|--use-system-ca|" + cursor + "index.js|worker|--pool|start"},
		{"cursor-agent", "/home/me/.local/bin/cursor-agent", "cursor-agent|worker|start"},
		{"vscode-agents", vscode + "node", vscode + "node|" + vscode + "out/bootstrap-fork|--type=agentHost|--logsPath|x"},
	} {
		executor := fake{pid: 70, session: 50, group: 70, tty: 7, front: 70, argv: x.argv, exe: x.exe, parent: 50}
		shell := fake{pid: 50, session: 50, group: 50, tty: 7, front: 70, argv: "-zsh", parent: 40}
		alone := fake{pid: 70, session: 70, group: 70, argv: x.argv, exe: x.exe, parent: 1}
		for way, c := range map[string]struct {
			line      []fake
			terminals []local.FakeTerminal
			others    map[int][]proc.Ancestor
		}{
			"in a pane":                     {line: []fake{{pid: 90, session: 50, group: 70, tty: 7, front: 70, argv: "tether|approve", parent: 70}, executor, shell}},
			"in a person's terminal":        {line: []fake{{pid: 90, session: 50, group: 70, tty: 7, front: 70, terminal: "pty-p", argv: "tether|approve", parent: 70}, executor, shell}, terminals: []local.FakeTerminal{{ID: "pty-p", Pid: 50, By: term.User}}},
			"without a terminal":            {line: []fake{{pid: 90, session: 80, group: 80, argv: "tether|approve", parent: 80}, {pid: 80, session: 80, group: 80, argv: "bash|-c|x", parent: 70}, alone}},
			"in a terminal that it made":    {line: []fake{{pid: 90, session: 80, group: 90, tty: 8, front: 90, argv: "tether|approve", parent: 80}, {pid: 80, session: 80, group: 80, tty: 8, front: 90, argv: "bash", parent: 70}, executor, shell}},
			"when it has lost its parents":  {line: []fake{{pid: 90, session: 70, group: 70, argv: "tether|approve", parent: 1}}, others: map[int][]proc.Ancestor{70: lineOf([]fake{alone})}},
			"in its group, without parents": {line: []fake{{pid: 90, session: 50, group: 70, tty: 7, front: 70, argv: "tether|approve", parent: 1}}, others: map[int][]proc.Ancestor{50: lineOf([]fake{shell}), 70: lineOf([]fake{executor, shell})}},
		} {
			got := local.FakeSystem{Lines: c.others}.Identify(lineOf(c.line), c.terminals, nil, &local.Identity{})
			if who(got) != "agent "+x.name || got.Sign != "" {
				t.Errorf("%s, %s: %s because %s, want agent %s", x.argv, way, who(got), got.Why, x.name)
			}
		}
	}
}

// Marks of agents' makers name agents of the table.
func TestVendorMarks(t *testing.T) {
	for _, mark := range proc.VendorMarks() {
		if mark.Agent != "" && !slices.ContainsFunc(local.KnownAgents(), func(row [4]string) bool { return row[0] == mark.Agent }) {
			t.Errorf("%s: %s is not in the table", mark.Var, mark.Agent)
		}
	}
}
