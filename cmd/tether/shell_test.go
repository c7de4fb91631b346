package main

import (
	"slices"
	"strings"
	"testing"
)

// The arguments that settings of terminal programs have need no tree of commands, and
// mean what it makes of them; all others are left to it.
func TestWindowArgs(t *testing.T) {
	for line, want := range map[string]struct {
		argv      string
		login, ok bool
	}{
		"shell --window":                   {"", false, true},
		"shell --window --login":           {"", true, true},
		"shell --window --":                {"", false, true},
		"shell --window --login -- fish":   {"fish", true, true},
		"shell --window -- -c exit":        {"-c exit", false, true},
		"shell --window --private":         {"", false, false},
		"shell --window fish":              {"", false, false},
		"shell --login --window":           {"", false, false},
		"shell":                            {"", false, false},
		"run --window":                     {"", false, false},
		"shell --window --login --no-such": {"", true, false},
	} {
		argv, login, ok := windowArgs(strings.Fields(line))
		if !slices.Equal(argv, strings.Fields(want.argv)) && len(argv)+len(want.argv) > 0 || login != want.login || ok != want.ok {
			t.Errorf("%s: %q, login %v, %v", line, argv, login, ok)
		}
	}
}
