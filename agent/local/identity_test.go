//go:build linux || darwin

package local_test

import (
	"fmt"
	"iter"
	"os"
	"strconv"
	"strings"
	"testing"

	"tether/agent/local"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// fake is a process of a lineage: a number, a session, a group, a terminal in whose
// foreground is a group, marks, and arguments.
type fake struct {
	parent                          int
	pid, session, group, tty, front int
	terminal, agent, vendor         string
	argv, exe                       string
}

// file is the file that it runs: the given one, or the one in /usr/bin that its arguments
// suggest; "none" if that cannot be read.
func (f fake) file() string {
	first, _, _ := strings.Cut(f.argv, "|")
	switch name := strings.TrimPrefix(first, "-"); {
	case f.exe == "none", f.exe == "" && f.argv == "":
		return ""
	case f.exe != "":
		return f.exe
	case strings.HasPrefix(first, "/"), strings.Contains(first, `\`):
		return first
	case strings.HasPrefix(name, "npm "):
		return "/usr/bin/node"
	default:
		name, _, _ = strings.Cut(name, ":")
		return "/usr/bin/" + strings.ToLower(name)
	}
}

// lineOf is the lineage of the first of all.
func lineOf(all []fake) []proc.Ancestor {
	var line []proc.Ancestor
	for _, f := range all {
		a := proc.Ancestor{Info: proc.Info{ID: proc.ID{Pid: f.pid, Start: uint64(f.pid)}, Parent: f.parent, Session: f.session, Group: f.group, TTY: f.tty, Front: f.front}, Exe: f.file()}
		if f.argv != "" {
			a.Argv = strings.Split(f.argv, "|")
		}
		if f.terminal != "" {
			a.Terminals = []string{f.terminal}
		}
		if f.agent != "" {
			a.Agents = []string{f.agent}
		}
		if f.vendor != "" {
			a.Vendors = strings.Split(f.vendor, "|")
		}
		line = append(line, a)
	}
	return line
}

// parseLine reads a lineage of testdata/lineages.txt.
func parseLine(t *testing.T, text string) (all []fake) {
	t.Helper()
	if text == "" {
		return nil
	}
	for one := range strings.SplitSeq(text, " < ") {
		var f fake
		first, rest, _ := strings.Cut(one, ", ")
		f.pid = atoi(t, first)
		for field := range strings.SplitSeq(rest, ", ") {
			name, value, _ := strings.Cut(field, " ")
			switch name {
			case "":
			case "session":
				f.session = atoi(t, value)
			case "group":
				f.group = atoi(t, value)
			case "tty":
				f.tty = atoi(t, value)
			case "front":
				f.front = atoi(t, value)
			case "argv":
				f.argv = value
			case "exe":
				f.exe = value
			case "terminal":
				f.terminal = value
			case "agent":
				f.agent = value
			case "vendor":
				f.vendor = value
			default:
				t.Fatalf("%q: a process has no %q", text, name)
			}
		}
		all = append(all, f)
	}
	for i := range all[:len(all)-1] {
		all[i].parent = all[i+1].pid
	}
	return all
}

func atoi(t *testing.T, text string) int {
	t.Helper()
	return must.Get(strconv.Atoi(text))(t)
}

// The identities of programs, over the lineages of testdata/lineages.txt.
func TestIdentify(t *testing.T) {
	for _, row := range testkit.Table(t, "lineages.txt", 8, 90) {
		want, name, why := row[0], row[1], row[5]
		system := local.FakeSystem{Holders: parseHolders(t, row[6]), Lines: parseOthers(t, row[7])}
		var i local.Identity
		i.Set([]string{"mytool", "/srv/Ours/run.py"}, []string{"ouragent"})
		got := system.Identify(lineOf(parseLine(t, row[2])), parseTerminals(t, row[3]), parseAgents(t, row[4]), &i)
		said := got.Why
		if want == "person" && !strings.Contains(said, why) {
			said = got.NoSign
		}
		if who(got) != want || !strings.Contains(said, why) || got.Actor == term.User && (got.Sign == "") == (got.NoSign == "") {
			t.Errorf("%s: %s: %+v; want %s because %q", name, who(got), got, want, why)
		}
	}
}

// who is a caller's identity, in the table's words.
func who(c local.Caller) string {
	switch {
	case c.Actor == term.User && c.Sign != "":
		return "person with a sign"
	case c.Actor == term.User:
		return "person"
	case c.Actor.Role == term.RoleAgent:
		return "agent " + c.Actor.Name
	}
	return "nobody"
}

func parseTerminals(t *testing.T, text string) (all []local.FakeTerminal) {
	t.Helper()
	for f := range fieldsOf(text, ", ") {
		if len(f) != 3 {
			t.Fatalf("terminals %q", text)
		}
		one := local.FakeTerminal{ID: f[0], Pid: atoi(t, f[1]), By: term.User, Unsigned: f[2] == "unsigned"}
		if f[2] != "person" && f[2] != "unsigned" {
			one.By = term.Agent(f[2])
		}
		all = append(all, one)
	}
	return all
}

func parseAgents(t *testing.T, text string) (all []local.AgentRecord) {
	t.Helper()
	for f := range fieldsOf(text, ", ") {
		pid := atoi(t, f[1])
		r := local.AgentRecord{ID: proc.ID{Pid: pid, Start: uint64(pid)}, Principal: f[0]}
		switch kind := strings.Join(f[2:], " "); {
		case kind == "editor":
			r.Editor = true
		case kind == "ended":
			r.Start = 1
		case strings.HasPrefix(kind, "group "):
			r.Group = atoi(t, f[3])
		case kind != "":
			t.Fatalf("agents %q", text)
		}
		all = append(all, r)
	}
	return all
}

// parseHolders are the processes that have the other ends of terminals open, nil where
// the system does not tell.
func parseHolders(t *testing.T, text string) map[int][]int {
	t.Helper()
	if text == "" {
		return nil
	}
	all := map[int][]int{}
	if text == "none" {
		return all
	}
	for f := range fieldsOf(text, ", ") {
		tty := atoi(t, strings.TrimSuffix(f[0], ":"))
		for _, pid := range f[1:] {
			all[tty] = append(all[tty], atoi(t, pid))
		}
	}
	return all
}

// parseOthers are lineages by the number of their first process.
func parseOthers(t *testing.T, text string) map[int][]proc.Ancestor {
	t.Helper()
	all := map[int][]proc.Ancestor{}
	if text == "" {
		return all
	}
	for one := range strings.SplitSeq(text, " && ") {
		line := lineOf(parseLine(t, one))
		all[line[0].Pid] = line
	}
	return all
}

// fieldsOf are the words of each part of a text.
func fieldsOf(text, between string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for part := range strings.SplitSeq(text, between) {
			if f := strings.Fields(part); len(f) > 0 && !yield(f) {
				return
			}
		}
	}
}

// The agent's process of tether mcp among its ancestors: testdata/above.txt.
func TestAgentAbove(t *testing.T) {
	mcp := fake{pid: 90, session: 50, argv: "tether|mcp|--as|x"}
	for _, row := range testkit.Table(t, "above.txt", 3, 58) {
		found := "none"
		if r, ok := (local.FakeSystem{}).AgentAbove(lineOf(append([]fake{mcp}, parseLine(t, row[2])...))); ok {
			kind, group := "agent", ""
			if r.Editor {
				kind = "editor"
			}
			if r.Group != 0 {
				group = fmt.Sprint(" group ", r.Group)
			}
			found = fmt.Sprint(kind, " ", r.Pid, group)
		}
		if found != row[0] {
			t.Errorf("%s: %s is found, want %s", row[1], found, row[0])
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
	self := must.Get(proc.Lookup(os.Getpid()))(t)
	was := self.ID
	was.Start--
	for _, r := range []local.AgentRecord{{ID: self.ID, Principal: "bob", Editor: true}, {ID: self.ID, Principal: "eve"}, {ID: was, Principal: "bob"}} {
		must.Do(t, a.Record(r))
	}
	again := local.OpenAgents(state)
	if all := again.List(); len(all) != 1 || all[0].ID != self.ID || all[0].Principal != "bob" || !all[0].Editor {
		t.Errorf("%+v", all)
	}
	if !again.Used() {
		t.Error("an agent has come")
	}
}
