package command_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tether/agent/command"
)

func TestOptions(t *testing.T) {
	for _, c := range []struct{ wrapper, words, met, operands string }{
		{"nohup", "", "", ""},
		{"nohup", "a -b", "", "a -b"},
		{"nohup", "-- -a b", "", "-a b"},
		{"nohup", "-xy --long a", "x= y= long=", "a"},
		{"nohup", "- a", "", "- a"},
		{"nice", "-n 5 a", "n=5", "a"},
		{"nice", "-n5 a", "n=5", "a"},
		{"nice", "-vn5 a", "v= n=5", "a"},
		{"nice", "-vn 5 a", "v= n=5", "a"},
		{"nice", "-n", "n=", ""},
		{"nice", "-10 a", "1= 0=", "a"},
		{"nice", "--adjustment 5 a", "adjustment=5", "a"},
		{"nice", "--adjustment=5 a", "adjustment=5", "a"},
		{"nice", "--adj 5 a", "adjustment=5", "a"}, // GNU takes the beginning of a name
		{"nice", "--a=5 a", "adjustment=5", "a"},
		{"stdbuf", "--i L a", "input=L", "a"},
		{"nohup", "--=5 a", "=5", "a"},
		{"unshare", "--setgi 5 a", "setgid=5", "a"},
		{"unshare", "--set 5 a", "set=5", "a"}, // more than one begins so
		{"nice", "--other 5 a", "other=", "5 a"},
		{"nice", "--adjustment", "adjustment=", ""},
		{"nice", "$X -n 5 a", "", "$X -n 5 a"}, // its value is unknown
		{"nice", "-n $X a", "n=$X", "a"},
		{"timeout", "-s KILL 5 a b", "s=KILL", "a b"},
		{"timeout", "5", "", ""},
		{"timeout", "", "", ""},
		{"sudo", "-u bob A=1 B= a C=2", "u=bob ==A=1 ==B=", "a C=2"},
		{"sudo", "=a b", "", "=a b"},
		{"cross-env", "A=$(x) a", "==A=$(x)", "a"},
		{"strace", "-feopen -o x a", "f= e=open o=x", "a"},
	} {
		met, operands := command.ParseOptions(c.wrapper, strings.Fields(c.words)...)
		if d := cmp.Diff([]string{c.met, c.operands}, []string{strings.Join(met, " "), strings.Join(operands, " ")}); d != "" {
			t.Errorf("%s %s\n-want +got:\n%s", c.wrapper, c.words, d)
		}
	}
}

// Findings have a subject: a command for those that a rule of the person's may cover, a
// text for all.
func TestFindingsSayWhere(t *testing.T) {
	for _, line := range []string{"python3 -c 1", "sh x", "sh", "eval a", "a | sh", "$X", ". a", "git -c alias.x=!a x", "vim -c x"} {
		r := command.Line(line)
		if len(r.Findings) == 0 {
			t.Errorf("%s: nothing was found", line)
		}
		for _, f := range r.Findings {
			if f.Text == "" || len(f.Command.Words) == 0 {
				t.Errorf("%s: %+v does not say where", line, f)
			}
		}
	}
	long := command.Line("python3 -c '" + strings.Repeat("é", 5000) + "'")
	if text := long.Findings[0].Text; len(text) > 130 || !strings.HasSuffix(text, "…") || !strings.HasPrefix(text, "python3 -c é") {
		t.Errorf("a long text is %q", text)
	}
}

// No finding hides behind many others.
func TestFindingsAreBounded(t *testing.T) {
	r := command.Line(strings.Repeat("a `b`;", 99) + "python3 -c 1; sh x")
	if len(r.Findings) != 100 || !r.Has(command.Unparsed) {
		t.Errorf("%d findings, the last is %+v", len(r.Findings), r.Findings[len(r.Findings)-1])
	}
	if r := command.Line(strings.Repeat("a `b`;", 99) + "sh x"); len(r.Findings) != 100 || r.Has(command.Unparsed) {
		t.Errorf("%d findings, the last is %+v", len(r.Findings), r.Findings[len(r.Findings)-1])
	}
}
