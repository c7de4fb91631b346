package policy_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"tether/agent/command"
	"tether/agent/policy"
	"tether/internal/testkit/must"
)

// Each line of the built-in lists finds its example and nothing similar, bare, by a path
// and behind another command; and each line has an example.
func TestOwnLists(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/lists.txt"))(t)
	e := engine(t, policy.Options{})
	rule := ""
	met := map[int]bool{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "# "); ok {
			rule = "builtin." + name
			continue
		}
		finds, near, ok := strings.Cut(line, " // ")
		if !ok {
			t.Fatalf("not a row: %q", line)
		}
		for _, form := range []string{finds, "/usr/local/bin/" + finds, "env A=1 " + finds, "sh -c '" + finds + "'"} {
			if d := e.Check(requestOf(t, policy.DoorMCP, form)); d.Rule != rule || d.Effect != policy.Ask {
				if d.Effect == policy.Deny && d.Rule == "builtin.patterns" && strings.Contains(form, "/dev/") {
					continue // like a redirection into the device
				}
				t.Errorf("%s: %+v, want that %s asks", form, d, rule)
			}
		}
		if d := e.Check(requestOf(t, policy.DoorMCP, near)); d.Rule == rule {
			t.Errorf("%s: %+v, though it is harmless", near, d)
		}
		read := command.Line(finds)
		for _, c := range slices.Concat(read.Commands, read.Outer) {
			for _, i := range policy.ListLines(c) {
				met[i] = true
			}
		}
	}
	for i, text := range policy.AllListLines() {
		if !met[i] {
			t.Errorf("no example for the line %q", text)
		}
	}
}
