package ahp_test

import (
	"testing"

	"tether/ahp"
)

func TestCleanTitle(t *testing.T) {
	for in, want := range map[string]string{
		"make run":                   "make run",
		"a\x1b]0;b\x07c\r\nd\u0085e": "a]0;bcde",
		"ev\u202eil\u2066":           "evil",
		"日本":                         "日本",
	} {
		if got := ahp.CleanTitle(in); got != want {
			t.Errorf("CleanTitle(%q) = %q, want %q", in, got, want)
		}
	}
}
