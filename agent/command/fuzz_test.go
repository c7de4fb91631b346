package command_test

import (
	"slices"
	"strings"
	"testing"

	"tether/agent/command"
)

// FuzzLine: the commands of any line are found again behind a shell and in a group.
func FuzzLine(f *testing.F) {
	for _, line := range []string{
		"a; b", "a $(b `c`)", "sh -c 'a b'", "env X=1 a", "a <<E\n$b\nE", "find . -exec a {} +", "xargs -I{} sh -c {}", "a | python3 -",
		"$'\\x41' \"b\"", "{ a; } 2>&1 >x", "case a in b) c;; esac", "f() (a)", "[[ a ]]", "((1))", "export A=$(b)", "a {b,c}", "time -p a",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		r := command.Line(line)
		for _, c := range slices.Concat(r.Commands, r.Outer) {
			if len(c.Words) == 0 {
				t.Fatalf("%q: a command without words", line)
			}
		}
		for _, f := range r.Findings {
			if len(f.Text) > 200 || f.Kind == "" {
				t.Fatalf("%q: finding %+v", line, f)
			}
		}
		if r.Has(command.Unparsed) || strings.Contains(line, "<<") || strings.HasSuffix(line, `\`) { // the text after it would change them
			return
		}
		behind := command.Argv([]string{"bash", "-c", "--", line})
		if !behind.Has(command.Unparsed) && !slices.EqualFunc(r.Commands, behind.Commands, sameCommand) {
			t.Fatalf("%q has %q, but behind bash -c %q", line, said(r), said(behind))
		}
		group := command.Line("(" + line + "\n)")
		if !group.Has(command.Unparsed) && !slices.EqualFunc(r.Commands, group.Commands, sameCommand) {
			t.Fatalf("%q has %q, but in a group %q", line, said(r), said(group))
		}
	})
}

func sameCommand(a, b command.Command) bool { return slices.Equal(a.Words, b.Words) }

// FuzzArgv: words come back as they were, and none of them is lost behind a wrapper.
func FuzzArgv(f *testing.F) {
	f.Add("a\x00b\x00$(c)")
	f.Add("env\x00-u\x00X\x00a")
	f.Add("timeout\x00-s\x00KILL\x005\x00a")
	f.Fuzz(func(t *testing.T, joined string) {
		argv := strings.Split(joined, "\x00")
		r := command.Argv(argv)
		if len(r.Commands)+len(r.Outer)+len(r.Findings) == 0 {
			t.Fatalf("%q: nothing was found", argv)
		}
		wrapped := command.Argv(append([]string{"nohup", "--"}, argv...))
		if !wrapped.Has(command.Unparsed) && !r.Has(command.Unparsed) && !slices.EqualFunc(r.Commands, wrapped.Commands, sameCommand) {
			t.Fatalf("%q has %q, but behind nohup %q", argv, said(r), said(wrapped))
		}
	})
}
