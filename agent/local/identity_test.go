//go:build linux || darwin

package local_test

import (
	"os"
	"strings"
	"testing"

	"tether/agent/local"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/platform/proc"
)

// fake is a process of a lineage: a number, a session, a group, a terminal in
// whose foreground is a group, marks, and arguments.
type fake struct {
	parent                          int
	pid, session, group, tty, front int
	terminal, agent                 string
	argv, exe                       string
}

// lineOf is the lineage of the first of all.
func lineOf(all []fake) []proc.Ancestor {
	var line []proc.Ancestor
	for _, f := range all {
		a := proc.Ancestor{Info: proc.Info{ID: proc.ID{Pid: f.pid, Start: uint64(f.pid)}, Parent: f.parent, Session: f.session, Group: f.group, TTY: f.tty, Front: f.front}, Exe: f.exe}
		if f.argv != "" {
			a.Argv = strings.Split(f.argv, "|")
		}
		if f.terminal != "" {
			a.Terminals = []string{f.terminal}
		}
		if f.agent != "" {
			a.Agents = []string{f.agent}
		}
		line = append(line, a)
	}
	return line
}

// For whom a program counts, over lineages that are made up.
func TestIdentify(t *testing.T) {
	bob := term.Agent("bob")
	person := local.FakeTerminal{ID: "pty-p", Pid: 50, By: term.User}
	unsigned := local.FakeTerminal{ID: "pty-u", Pid: 50, By: term.User, Unsigned: true}
	agents := local.FakeTerminal{ID: "pty-a", Pid: 60, By: bob}
	starting := local.FakeTerminal{ID: "pty-s", By: bob}
	record := func(pid int) local.AgentRecord {
		return local.AgentRecord{ID: proc.ID{Pid: pid, Start: uint64(pid)}, Principal: "bob"}
	}
	editor, group, old := record(70), record(70), record(70)
	editor.Editor, group.Group, old.Start = true, 70, 1
	at := func(f fake, tty, front int) fake { f.tty, f.front = tty, front; return f }
	cmd := fake{pid: 90, session: 50, group: 90, argv: "tether|approve"}
	shell := fake{pid: 50, session: 50, group: 50, argv: "-zsh"}
	in, sh := fake{pid: 90, session: 80, group: 90, argv: "tether|approve"}, fake{pid: 80, session: 80, group: 80, argv: "sh|-c|x"}
	agent := fake{pid: 70, session: 50, group: 70, argv: "claude"}
	for _, c := range []struct {
		name      string
		line      []fake
		terminals []local.FakeTerminal
		agents    []local.AgentRecord
		want      term.Actor
		why       string // part of it
		sign      bool
	}{
		{"gone", nil, nil, nil, term.Actor{}, "has ended", false},
		{"a command at a prompt", []fake{at(cmd, 7, 90), shell}, nil, nil, term.User, `no agent has started process 90 ("tether")`, true},
		{"in the background", []fake{at(cmd, 7, 50), shell}, nil, nil, term.User, "no agent", false},
		{"from cron", []fake{{pid: 90, session: 80, group: 80}, {pid: 80, session: 80, argv: "sh|-c|x"}, {pid: 5, session: 5, argv: "cron"}}, nil, nil, term.User, "", false},
		{"what cannot be read ends the lineage", []fake{{pid: 90, session: 90, group: 90}}, nil, nil, term.User, "process 90", false},
		{"an agent's terminal by its number", []fake{cmd, {pid: 60, session: 60}}, []local.FakeTerminal{agents}, nil, bob, "runs in terminal pty-a", false},
		{"by its session", []fake{{pid: 90, session: 60}}, []local.FakeTerminal{agents}, nil, bob, "runs in terminal pty-a", false},
		{"by its mark", []fake{{pid: 90, session: 90, terminal: "pty-a"}}, []local.FakeTerminal{agents}, nil, bob, "mark of terminal pty-a", false},
		{"one that is being started", []fake{{pid: 90, session: 90, terminal: "pty-s"}}, []local.FakeTerminal{starting}, nil, bob, "mark of terminal pty-s", false},
		{"an agent's mark of an unknown terminal", []fake{{pid: 90, session: 90, terminal: "pty-x", agent: "bob"}}, nil, nil, bob, "the mark TETHER_AGENT=bob", false},
		{"an agent's mark further up", []fake{cmd, {pid: 80, agent: "bob"}}, nil, nil, bob, "process 80", false},
		{"a person's unknown mark", []fake{{pid: 90, session: 90, terminal: "pty-x"}}, nil, nil, term.User, "", false},
		{"an agent in the person's terminal", []fake{at(fake{pid: 90, session: 50, group: 70, terminal: "pty-p"}, 7, 70), agent, shell}, []local.FakeTerminal{person}, []local.AgentRecord{record(70)}, bob, `process 70 ("claude") is agent bob`, false},
		{"the person beside that agent", []fake{at(cmd, 7, 90), shell}, []local.FakeTerminal{person}, []local.AgentRecord{record(70)}, term.User, "", true},
		{"the number of an agent that has ended", []fake{cmd, agent, shell}, nil, []local.AgentRecord{old}, term.User, "", false},
		{"in the session that an agent leads", []fake{{pid: 90, session: 70}}, nil, []local.AgentRecord{record(70)}, bob, "session of agent bob", false},
		{"in the group that an agent leads", []fake{at(fake{pid: 90, session: 50, group: 70}, 7, 70)}, nil, []local.AgentRecord{group}, bob, "process group of agent bob", false},
		{"in an editor, without a terminal", []fake{{pid: 90, session: 90}, agent}, nil, []local.AgentRecord{editor}, bob, "is agent bob", false},
		{"in an editor's terminal", []fake{at(fake{pid: 90, session: 80, group: 90}, 7, 90), {pid: 80, session: 80}, agent}, nil, []local.AgentRecord{editor}, term.User, "", true},
		{"an agent's terminal comes before what its environment says", []fake{{pid: 90, agent: "eve"}, {pid: 60, session: 60}}, []local.FakeTerminal{agents}, nil, bob, "pty-a", false},
		{"a daemon that an agent has started", []fake{at(cmd, 7, 90), shell, {pid: 2}, {pid: 60, session: 60, agent: "bob"}}, []local.FakeTerminal{agents}, nil, term.User, "", true},
		{"a holder below an agent's terminal", []fake{at(cmd, 7, 90), shell, {pid: 40}, {pid: 60, session: 60, agent: "bob"}}, []local.FakeTerminal{agents, person}, nil, term.User, "", true},
		{"a terminal that nobody with a sign has started", []fake{at(cmd, 7, 90), shell}, []local.FakeTerminal{unsigned}, nil, term.User, "", false},
		{"without a mark in a session within one", []fake{at(fake{pid: 90, session: 80, group: 90}, 8, 90), {pid: 80, session: 80}, shell}, []local.FakeTerminal{unsigned}, nil, term.User, "", false},
		{"a person's terminal whose holder descends from one", []fake{at(fake{pid: 90, session: 80, group: 90}, 8, 90), {pid: 80, session: 80}, {pid: 40}, shell}, []local.FakeTerminal{unsigned, {ID: "pty-q", Pid: 80, By: term.User}}, nil, term.User, "", true},
		{"a daemon that was started in one", []fake{at(fake{pid: 90, session: 80, group: 90}, 8, 90), {pid: 80, session: 80}, {pid: 2}, shell}, []local.FakeTerminal{unsigned}, nil, term.User, "", true},
		{"one that has ended", []fake{at(cmd, 7, 90), shell}, []local.FakeTerminal{{ID: "pty-u", By: term.User, Unsigned: true}}, nil, term.User, "", true},
		{"in script at a terminal", []fake{at(in, 8, 90), sh, at(fake{pid: 75, session: 50, group: 75, argv: "script|-c|x"}, 7, 75), at(shell, 7, 75)}, nil, nil, term.User, "", true},
		{"in script without a terminal", []fake{at(in, 8, 90), sh, {pid: 75, session: 50, group: 75, argv: "/usr/bin/script|-q|/dev/null|x"}, shell}, nil, nil, term.User, "", false},
		{"in script in the background", []fake{at(in, 8, 90), sh, at(fake{pid: 75, session: 50, group: 75, argv: "script|-c|x"}, 7, 50), at(shell, 7, 50)}, nil, nil, term.User, "", false},
		{"in script in script without a terminal", []fake{at(in, 8, 90), sh, at(fake{pid: 75, session: 74, group: 75, argv: "script"}, 7, 75), {pid: 74, session: 74, tty: 7}, {pid: 73, argv: "script"}}, nil, nil, term.User, "", false},
		{"that leads its session itself", []fake{at(fake{pid: 90, session: 90, group: 90, argv: "tether"}, 8, 90), {pid: 75, argv: "script"}}, nil, nil, term.User, "", false},
		{"in a terminal of an interpreter", []fake{at(in, 8, 90), sh, {pid: 75, argv: "python3|-c|import pty; pty.spawn('sh')"}}, nil, nil, term.User, "", false},
		{"in a terminal of a script", []fake{at(in, 8, 90), sh, {pid: 75, argv: "node|/srv/x/pty.js"}}, nil, nil, term.User, "", false},
		{"in a terminal of an emulator in an interpreter", []fake{at(in, 8, 90), sh, {pid: 75, argv: "/usr/bin/python3|/usr/bin/terminator"}}, nil, nil, term.User, "", true},
		{"in a terminal of Jupyter", []fake{at(in, 8, 90), sh, {pid: 75, argv: "/usr/bin/python3|-m|jupyterlab"}}, nil, nil, term.User, "", true},
		{"in a terminal of VS Code's server", []fake{at(in, 8, 90), sh, {pid: 75, argv: "/home/me/.vscode-server/bin/node|/home/me/.vscode-server/bin/out/bootstrap-fork|--type=ptyHost"}}, nil, nil, term.User, "", true},
		{"in a terminal of an unknown program", []fake{at(in, 8, 90), sh, {pid: 75, argv: "newterm"}}, nil, nil, term.User, "", true},
		{"in a pane of tmux", []fake{at(in, 8, 90), sh, {pid: 75, argv: "tmux: server"}}, nil, nil, term.User, "", true},
		{"over ssh", []fake{at(in, 8, 90), sh, {pid: 75}}, nil, nil, term.User, "", true},
		{"in a container whose first process is a shell", []fake{at(in, 8, 90), sh, {pid: 1, argv: "sh"}}, nil, nil, term.User, "", true},
		{"a terminal of tether's that script has started", []fake{at(cmd, 7, 90), shell, {pid: 40, argv: "script"}}, []local.FakeTerminal{person}, nil, term.User, "", true},
		{"a terminal within one", []fake{at(fake{pid: 90, session: 80, group: 90, terminal: "pty-u"}, 8, 90), {pid: 80, session: 80}}, []local.FakeTerminal{unsigned}, nil, term.User, "", false},
	} {
		got := local.Identify(lineOf(c.line), c.terminals, c.agents)
		if got.Actor != c.want || !strings.Contains(got.Why, c.why) || (got.Sign != "") != c.sign || got.Actor == term.User && (got.Sign == "") == (got.NoSign == "") {
			t.Errorf("%s: %+v; want %s because %q, sign %t", c.name, got, c.want, c.why, c.sign)
		}
	}
}

// Who has made a terminal, where the system tells which processes have its other end open.
func TestWhoHasMadeATerminal(t *testing.T) {
	in := func(tty int) fake { return fake{pid: 90, session: 80, group: 90, tty: tty, front: 90, argv: "tether"} }
	sh := fake{pid: 80, session: 80, group: 80, argv: "sh"}
	system := fake{pid: 1}
	front := func(f fake) fake { f.session, f.group, f.tty, f.front = 50, f.pid, 7, f.pid; return f }
	shell := front(fake{pid: 50, argv: "-zsh"})
	shell.group, shell.front = 50, 75
	for _, c := range []struct {
		name    string
		line    []fake
		holders map[int][]int
		lines   map[int][]fake
		noSign  string // part of why there is none; "" if there is one
	}{
		{"a console", []fake{in(4), sh, system}, map[int][]int{}, nil, ""},
		{"an emulator that is the parent", []fake{in(8), sh, {pid: 70, argv: "xterm", exe: "/usr/bin/xterm"}}, map[int][]int{8: {70}}, nil, ""},
		{"an emulator that is not", []fake{in(8), sh, {pid: 60, argv: "ptyxis-agent"}}, map[int][]int{8: {70}}, map[int][]fake{70: {{pid: 70, exe: "/usr/bin/ptyxis"}}}, ""},
		{"a server of tmux", []fake{in(8), sh, {pid: 70, argv: "tmux: server", exe: "/usr/bin/tmux"}, system}, map[int][]int{8: {70}}, nil, ""},
		{"VS Code's server", []fake{in(8), sh, {pid: 70, argv: "/home/me/.vscode-server/bin/node|/home/me/.vscode-server/bin/out/bootstrap-fork|--type=ptyHost", exe: "/home/me/.vscode-server/bin/node"}}, map[int][]int{8: {70}}, nil, ""},
		{"sshd, which may not be looked at", []fake{in(8), sh, {pid: 74, argv: "sshd: me@pts/8"}, {pid: 75, argv: "sshd: me [priv]"}, system}, map[int][]int{}, nil, ""},
		{"sshd's name, which anybody may have", []fake{in(8), sh, {pid: 74, argv: "sshd: me@pts/8"}, system}, map[int][]int{}, nil, "no program is found"},
		{"a privileged service for jobs", []fake{in(8), sh, {pid: 74}, {pid: 75, argv: "/usr/sbin/cron"}, system}, map[int][]int{}, nil, "no program is found"},
		{"docker exec", []fake{in(8), sh}, map[int][]int{}, nil, ""},
		{"one that has ended", []fake{in(8), sh, system}, map[int][]int{}, nil, "no program is found"},
		{"one that has ended and left it to another", []fake{in(8), sh, system}, map[int][]int{8: {70}}, map[int][]fake{70: {{pid: 70, argv: "script", exe: "/usr/bin/script"}, system}}, "has no controlling terminal"},
		{"left to an interpreter", []fake{in(8), sh, system}, map[int][]int{8: {70}}, map[int][]fake{70: {{pid: 70, argv: "xterm", exe: "/usr/bin/python3.12"}, system}}, "has no controlling terminal"},
		{"one with an emulator's name", []fake{in(8), sh, {pid: 70, argv: "xterm", exe: "/usr/bin/script"}}, map[int][]int{8: {70}}, nil, "has no controlling terminal"},
		{"one behind the system's loader", []fake{in(8), sh, {pid: 70, argv: "xterm", exe: "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"}}, map[int][]int{8: {70}}, nil, "has no controlling terminal"},
		{"an agent's", []fake{in(8), sh, system}, map[int][]int{8: {70}}, map[int][]fake{70: {{pid: 70, agent: "bob", exe: "/usr/bin/newterm"}, system}}, "TETHER_AGENT=bob"},
		{"one that the parent has, which is none that is expected", []fake{in(8), sh, {pid: 60, argv: "xterm", exe: "/usr/bin/xterm"}}, map[int][]int{8: {70}}, map[int][]fake{70: {{pid: 70, exe: "/usr/bin/perl"}, system}}, "has no controlling terminal"},
		{"script at a terminal", []fake{in(8), sh, front(fake{pid: 75, argv: "script", exe: "/usr/bin/script"}), shell, {pid: 40, exe: "/usr/bin/xterm"}}, map[int][]int{8: {75}, 7: {40}}, nil, ""},
		{"script at a terminal that nobody has made", []fake{in(8), sh, front(fake{pid: 75, argv: "script", exe: "/usr/bin/script"}), shell, system}, map[int][]int{8: {75}}, nil, "no program is found"},
		{"what has it from an emulator", []fake{in(8), sh, {pid: 70, exe: "/usr/bin/dvtm"}}, map[int][]int{8: {70, 71}}, map[int][]fake{71: {{pid: 71, exe: "/bin/sh"}, {pid: 70}}}, ""},
		{"one of several", []fake{in(8), sh, {pid: 70, exe: "/usr/bin/dvtm"}}, map[int][]int{8: {70, 71}}, map[int][]fake{71: {{pid: 71, exe: "/usr/bin/script"}, system}}, "has no controlling terminal"},
	} {
		for i := range c.line[:len(c.line)-1] {
			c.line[i].parent = c.line[i+1].pid
		}
		lines := map[int][]proc.Ancestor{}
		for pid, all := range c.lines {
			lines[pid] = lineOf(all)
		}
		got := local.IdentifyWith(lineOf(c.line), nil, nil, c.holders, lines)
		if got.Actor != term.User || (got.Sign != "") != (c.noSign == "") || !strings.Contains(got.NoSign, c.noSign) {
			t.Errorf("%s: %+v; want no sign because %q", c.name, got, c.noSign)
		}
	}
}

// Which process is the agent of tether mcp, above what.
func TestAgentAbove(t *testing.T) {
	const tty = 7
	mcp := fake{pid: 90, session: 50, argv: "tether|mcp|--as|x"}
	shell := fake{pid: 50, session: 50, argv: "-bash"}
	for _, c := range []struct {
		name   string
		above  []fake
		want   int // 0: none
		editor bool
		group  int
	}{
		{"an agent", []fake{{pid: 70, session: 50, group: 70, argv: "/usr/bin/claude"}, shell}, 70, false, 70},
		{"an agent that is a script", []fake{{pid: 70, session: 50, group: 70, argv: "node|/usr/lib/claude/cli.js"}, shell}, 70, false, 70},
		{"behind sh -c", []fake{{pid: 80, session: 50, argv: "sh|-c|tether mcp; true"}, {pid: 70, session: 50, group: 70, argv: "kimi"}}, 70, false, 70},
		{"behind a script of a shell", []fake{{pid: 80, session: 50, argv: "/bin/bash|/home/me/mcp.sh"}, {pid: 70, argv: "kimi"}}, 70, false, 0},
		{"behind npx", []fake{{pid: 80, argv: "npm exec tether mcp"}, {pid: 70, argv: "codex"}}, 70, false, 0},
		{"behind npx with its path", []fake{{pid: 80, argv: "node|/usr/bin/npx|x"}, {pid: 70, argv: "codex"}}, 70, false, 0},
		{"behind npx-cli.js", []fake{{pid: 80, argv: "node|/lib/npm/bin/npx-cli.js|x"}, {pid: 70, argv: "codex"}}, 70, false, 0},
		{"behind uvx", []fake{{pid: 80, argv: "/home/me/.local/bin/uv|tool|uvx|x"}, {pid: 70, argv: "python3|agent.py"}}, 70, false, 0},
		{"behind env and timeout", []fake{{pid: 81, argv: "env|A=1|x"}, {pid: 80, argv: "timeout|9|x"}, {pid: 70, argv: "goose"}}, 70, false, 0},
		{"an agent in npx", []fake{{pid: 70, session: 50, group: 65, argv: "claude"}, {pid: 65, session: 50, group: 65, argv: "npm exec claude"}, shell}, 70, false, 65},
		{"an agent that leads its session", []fake{{pid: 70, session: 70, group: 70, argv: "claude"}}, 70, false, 0},
		{"typed at a prompt", []fake{shell}, 0, false, 0},
		{"typed in a shell in a shell", []fake{{pid: 60, session: 50, argv: "bash"}, shell}, 0, false, 0},
		{"process 1", []fake{{pid: 1, session: 1, argv: "/entrypoint"}}, 0, false, 0},
		{"the daemon", []fake{{pid: 2, session: 2, argv: "/usr/bin/tether|daemon"}}, 0, false, 0},
		{"one whose program is not known", []fake{{pid: 70}}, 0, false, 0},
		{"an unknown emulator", []fake{{pid: 80, session: 80, tty: tty, argv: "sh|-c|tether mcp"}, {pid: 70, argv: "newterm"}}, 0, false, 0},
		{"VS Code", []fake{{pid: 70, session: 30, group: 30, argv: "/usr/share/code/code|--type=utility"}}, 70, true, 0},
		{"VS Code on macOS", []fake{{pid: 70, argv: "/Applications/Visual Studio Code.app/Contents/Frameworks/Code Helper (Plugin).app/Contents/MacOS/Code Helper (Plugin)|x"}}, 70, true, 0},
		{"VS Code's server", []fake{{pid: 70, argv: "/home/me/.vscode-server/cli/servers/x/server/node|/home/me/.vscode-server/cli/servers/x/server/out/bootstrap-fork"}}, 70, true, 0},
		{"Cursor", []fake{{pid: 70, argv: "/opt/Cursor/cursor"}}, 70, true, 0},
		{"Cursor's agent is none", []fake{{pid: 70, argv: "cursor-agent"}}, 70, false, 0},
		{"Zed", []fake{{pid: 70, argv: "/usr/libexec/zed-editor"}}, 70, true, 0},
		{"IntelliJ", []fake{{pid: 70, argv: "/opt/idea/jbr/bin/java|-Xmx2g"}}, 70, true, 0},
		{"GoLand", []fake{{pid: 70, argv: "/opt/goland/bin/goland"}}, 70, true, 0},
		{"Emacs", []fake{{pid: 70, session: 50, argv: "emacs-29.1"}, shell}, 70, true, 0},
		{"Neovim", []fake{{pid: 70, session: 50, argv: "nvim|--embed"}, shell}, 70, true, 0},
	} {
		got, ok := local.AgentAbove(lineOf(append([]fake{mcp}, c.above...)))
		if ok != (c.want != 0) || got.Pid != c.want || got.Editor != c.editor || got.Group != c.group {
			t.Errorf("%s: %+v, %t; want process %d, editor %t, group %d", c.name, got, ok, c.want, c.editor, c.group)
		}
	}
	for _, never := range []string{"systemd|--user", "/sbin/launchd", "(sd-pam)", "runsv", "s6-supervise", "/usr/bin/containerd-shim", "cron", "/usr/sbin/sshd|-D", "sshd: me@pts/0", "sshd-session: me", "su|-", "sudo|x",
		"xterm", "/usr/libexec/gnome-terminal-server", "konsole", "alacritty", "kitty", "wezterm-gui", "ghostty", "/Applications/iTerm.app/Contents/MacOS/iTerm2", "Terminal", "foot", `C:\Program Files\WindowsApps\WindowsTerminal.exe`,
		"tmux: server", "tmux|new", "SCREEN|-S|x", "zellij", "dtach", "login", "gnome-shell", `C:\Windows\explorer.exe`} {
		if got, ok := local.AgentAbove(lineOf([]fake{mcp, {pid: 80, argv: "sh|-c|x"}, {pid: 70, argv: never}, {pid: 60, argv: "claude"}})); ok {
			t.Errorf("%s: %+v is recorded", never, got)
		}
	}
}

// A record lasts as long as its process, and says for good that an agent has come.
func TestAgentRecords(t *testing.T) {
	state := testkit.Home(t)
	a := local.OpenAgents(state)
	if a.Used() || len(a.List()) > 0 {
		t.Error("nobody has come")
	}
	self, err := proc.Lookup(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	was := self.ID
	was.Start--
	for _, r := range []local.AgentRecord{{ID: self.ID, Principal: "bob", Editor: true}, {ID: self.ID, Principal: "eve"}, {ID: was, Principal: "bob"}} {
		if err := a.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	again := local.OpenAgents(state)
	if all := again.List(); len(all) != 1 || all[0].ID != self.ID || all[0].Principal != "bob" || !all[0].Editor {
		t.Errorf("%+v", all)
	}
	if !again.Used() {
		t.Error("an agent has come")
	}
}
