package config_test

import (
	"strings"
	"testing"

	"tether/agent/config"
	"tether/internal/testkit/must"
	"tether/problems"
)

// A matcher in VS Code's format finds its tool's reports, and wins over those of known
// tools.
func TestProblemMatcher(t *testing.T) {
	c := must.Get(config.Parse("f", []byte(`
[[problem_matcher]]
name = "ours"
owner = "ourlint"
severity = "warning"
background = {beginsPattern = "^checking again"}
[[problem_matcher.pattern]]
regexp = '^== (\S+)$'
file = 1
[[problem_matcher.pattern]]
regexp = '^(\d+): (.+)$'
line = 1
message = 2
loop = true
`)))(t)
	set := must.Get(c.Matchers())(t)
	tr := problems.NewTracker(set, 0)
	output := "== a.txt\n3: too long\n9: too short\nmain.c:1: error: x\n"
	tr.Write(0, []byte(output))
	got := tr.Problems(0)
	if len(got) != 3 || got[1].File != "a.txt" || got[1].Line != 9 || got[1].Tool != "ourlint" || got[1].Severity != problems.Warning || got[2].Tool != "gcc" {
		t.Errorf("got %+v", got)
	}
	tr.Write(int64(len(output)), []byte("checking again\n"))
	if got = tr.Problems(0); len(got) != 1 {
		t.Errorf("after a new round: %+v", got)
	}
}

func TestBadProblemMatchers(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"[[problem_matcher]]\nowner = \"x\"", "problem_matcher.0: pattern is missing"},
		{"[[problem_matcher]]\npattern = [{regexp = 'x'}]", "problem_matcher.0: owner is missing"},
		{"[[problem_matcher]]\nowner = \"x\"\npattern = [{regexp = '(?=x)', message = 1}]", "the syntax is RE2's"},
		{"[[problem_matcher]]\nowner = \"x\"\npattern = [{regexp = '(x)', file = 1, line = 2, message = 1}]", "line is group 2, but the regular expression has 1 groups"},
		{"[[problem_matcher]]\nowner = \"x\"\npattern = [{regex = 'x'}]", "did you mean problem_matcher.0.pattern.0.regexp?"},
		{"[[problem_matcher]]\nowner = \"x\"\nseverity = \"bad\"", "\"bad\" must be one of error, warning, info"},
	} {
		if _, err := config.Parse("f", []byte(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\n: %v, want %q", c.text, err, c.want)
		}
	}
}
