//go:build linux || darwin

package local_test

import (
	"slices"
	"strings"
	"testing"

	"tether/agent/local"
	"tether/platform/proc"
)

// atShell is the lineage of a command that a program runs by sh -c at the person's terminal. The program's file is exe.
func atShell(exe string, argv ...string) []proc.Ancestor {
	return lineOf([]fake{
		{parent: 80, pid: 90, session: 50, group: 70, tty: 7, front: 70, argv: "tether|approve"},
		{parent: 70, pid: 80, session: 50, group: 70, tty: 7, front: 70, argv: "sh|-c|tether approve"},
		{parent: 50, pid: 70, session: 50, group: 70, tty: 7, front: 70, argv: strings.Join(argv, "|"), exe: exe},
		{parent: 40, pid: 50, session: 50, group: 50, tty: 7, front: 70, argv: "-zsh"},
	})
}

// Every row of the table of known agents is recognised in each form: as an executable, as the script of an interpreter and of a shell, and
// by the directories of its package. No known agent has the name of a program in another table.
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

// Marks of agents' makers name agents of the table.
func TestVendorMarks(t *testing.T) {
	for _, mark := range proc.VendorMarks() {
		if mark.Agent != "" && !slices.ContainsFunc(local.KnownAgents(), func(row [4]string) bool { return row[0] == mark.Agent }) {
			t.Errorf("%s: %s is not in the table", mark.Var, mark.Agent)
		}
	}
}
