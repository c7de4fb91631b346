package problems_test

import (
	"strings"
	"testing"

	"tether/problems"
)

func linked(url, text string) string { return "\x1b]8;;" + url + "\x1b\\" + text + "\x1b]8;;\x1b\\" }

// Links do not keep a matcher from its lines. Their targets are in the message, and
// beside the code.
func TestLinksInProblems(t *testing.T) {
	for name, c := range map[string]struct{ output, message, code, href string }{
		"gcc": {"\x1b[1mmain.c:3:7:\x1b[m \x1b[35mwarning: \x1b[munused variable 'x' [\x1b[35m" + linked("https://gcc.example/W.html#Wunused-variable", "-Wunused-variable") + "\x1b[m]\n",
			"unused variable 'x'", "-Wunused-variable", "https://gcc.example/W.html#Wunused-variable"},
		"ruff": {linked("https://docs.example/rules/unused-import", "F401") + " [*] `os` imported but unused\n --> a.py:1:8\n  |\n1 | import os\n\n",
			"`os` imported but unused", "F401", "https://docs.example/rules/unused-import"},
		"in the message": {"main.c:3:7: error: see " + linked("https://a.example/x", "the manual") + " and " + linked("http://b.example", "another") + ", please\n",
			"see the manual [https://a.example/x] and another [http://b.example], please", "", ""},
		"a file":           {linked("file:///src/main.c", "main.c") + ":3:7: error: gone\n", "gone", "", ""},
		"the URL itself":   {"main.c:3:7: error: see " + linked("https://a.example/", "https://a.example") + "\n", "see https://a.example", "", ""},
		"of an other line": {"see " + linked("https://a.example", "the manual") + "\nmain.c:3:7: error: no the manual\n", "no the manual", "", ""},
		"gone again":       {linked("https://a.example", "the manual") + "\r\x1b[Kmain.c:3:7: error: no the manual\n", "no the manual", "", ""},
	} {
		got := found(c.output)
		if len(got) != 1 || got[0].Message != c.message || got[0].Code != c.code || got[0].Href != c.href {
			t.Errorf("%s: %+v, want %q, %q, %q", name, got, c.message, c.code, c.href)
		}
	}
	many := "main.c:3:7: error: "
	for range 200 {
		many += linked("https://a.example/"+strings.Repeat("x", 400), "xyz") + " "
	}
	if got := found(many + "\n"); len(got) != 1 || len(got[0].Message) > 1000 {
		t.Errorf("many links: %+v", got)
	}
	tracker := problems.NewTracker(problems.Builtin(), 0)
	tracker.Write(0, []byte("Fatal failure, "+linked("https://a.example", "read this")+"\n"))
	if got := tracker.Unrecognised(); len(got) != 1 || got[0] != "Fatal failure, read this [https://a.example]" {
		t.Errorf("unrecognised: %q", got)
	}
}
