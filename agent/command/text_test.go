package command_test

import (
	"slices"
	"testing"

	"tether/agent/command"
)

// A line that is not UTF-8 may be another one for its shell: it is not judged by what the
// parser makes of it.
func TestLineThatIsNotUTF8(t *testing.T) {
	for _, argv := range [][]string{{"sh", "-c", "ls \xe9"}, {"bash", "-c", "\xed\xa0\x80"}} {
		if got := command.Argv(argv); !slices.ContainsFunc(got.Findings, func(f command.Finding) bool { return f.Kind == command.Unparsed }) {
			t.Errorf("%q: %+v", argv, got.Findings)
		}
	}
}
