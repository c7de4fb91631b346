package policy_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"tether/agent/policy"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// rows are the lines of a table in testdata; "\n" that begins a line with a blank, a
// closing brace or nothing goes on with the one before.
func rows(t *testing.T, file string) []string {
	t.Helper()
	data := must.Get(os.ReadFile("testdata/" + file))(t)
	var all []string
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '}' || line[0] == ' ':
			all[len(all)-1] += "\n" + line
		default:
			all = append(all, line)
		}
	}
	return all
}

// Nothing that runs, writes or deletes something behind a program's arguments passes
// without a question: neither as it stands nor behind another command, nor in a directory
// below /tmp.
func TestHiddenCommands(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	e := engine(t, policy.Options{})
	all := rows(t, "hidden.txt")
	if len(all) < 380 {
		t.Errorf("the table has %d rows, want at least 380", len(all))
	}
	for _, line := range all {
		for _, form := range []string{line, "true && " + line, "if true; then " + line + "\nfi"} {
			if d := e.Check(requestOf(t, policy.DoorMCP, form)); d.Effect == policy.Allow {
				t.Errorf("%s: allowed by %s", form, d.Rule)
			}
		}
	}
	slices.Sort(all)
	for i, line := range all[1:] {
		if line == all[i] {
			t.Errorf("%s: twice", line)
		}
	}
	r := requestOf(t, policy.DoorMCP, "echo x > ~/.bashrc")
	r.Cwd = "/tmp/x"
	if d := e.Check(r); d.Rule != "builtin.files" {
		t.Errorf("into the home directory, from below /tmp: %+v", d)
	}
}

// Everyday commands of agents cause few questions: the table of programs asks about
// nothing ordinary. Before the table, these commands asked 7 times at mcp and 4 times at
// acp.
func TestOrdinaryCommands(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	e := engine(t, policy.Options{})
	all := rows(t, "ordinary.txt")
	if len(all) < 800 {
		t.Errorf("the table has %d rows, want at least 800", len(all))
	}
	questions := [2]int{}
	for _, row := range all {
		fields := strings.SplitN(row, " ", 3)
		for i, door := range []string{policy.DoorMCP, policy.DoorACP} {
			d := e.Check(requestOf(t, door, fields[2]))
			if d.Effect.String() != fields[i] {
				t.Errorf("%s at %s: %s by %s (%s), want %s", fields[2], door, d.Effect, d.Rule, d.Reason, fields[i])
			}
			if d.Effect != policy.Allow {
				questions[i]++
			}
		}
	}
	if most := [2]int{7 + 20, 4 + 20}; questions[0] > most[0] || questions[1] > most[1] { // two more a day, for ten days
		t.Errorf("%d questions at mcp and acp, at most %d", questions, most)
	}
}

// Rules are written for the commands that their authors think of. Of a table by
// somebody who did not know the rules they hold at least 98 %, and ask about nothing in
// it that is ordinary.
func TestHeldOutCommands(t *testing.T) {
	testkit.Unix(t, testkit.Paths)
	e := engine(t, policy.Options{})
	asked, all := 0, 0
	for _, row := range rows(t, "held_out.txt") {
		want, line, ok := strings.Cut(row, "\t")
		if !ok {
			t.Fatalf("not a row: %q", row)
		}
		d := e.Check(requestOf(t, policy.DoorMCP, line))
		if want == "allow" {
			if d.Effect != policy.Allow {
				t.Errorf("%s: %s by %s (%s), though it is ordinary", line, d.Effect, d.Rule, d.Reason)
			}
			continue
		}
		all++
		if d.Effect == policy.Allow {
			t.Logf("passes: %s", line)
			continue
		}
		asked++
	}
	if all < 300 || asked*100 < all*98 {
		t.Errorf("%d of %d lines are asked about, want 98 %% of at least 300", asked, all)
	}
}
