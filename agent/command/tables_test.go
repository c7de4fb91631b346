package command_test

import (
	"slices"
	"strings"
	"testing"

	"tether/agent/command"
	"tether/internal/testkit"
)

// found reports whether the reading has the command among those that do the work.
func found(r *command.Reading, want string) bool {
	return slices.ContainsFunc(r.Commands, func(c command.Command) bool { return c.String() == want })
}

// Every wrapper lets the command behind it be seen: bare, after options that have values,
// after "--", in a directory, and behind another wrapper.
func TestEveryWrapper(t *testing.T) {
	for _, name := range command.Wrappers() {
		if name == "time" {
			continue // in a line it is a word of the shell's; see TestLines
		}
		operands := strings.Repeat("x ", command.WrapperSkips(name))
		for _, line := range []string{
			name + " " + operands + "inner a",
			"/usr/bin/" + name + " " + operands + "inner a",
			name + " -- " + operands + "inner a",
			"sudo " + name + " " + operands + "inner a",
			"if " + name + " " + operands + "inner a; then b; fi",
		} {
			if r := command.Line(line); !found(r, "inner a") {
				t.Errorf("%s: %q", line, said(r))
			}
		}
		if r := command.Line(name + ` "$X"`); !r.Has(command.Dynamic) && command.WrapperSkips(name) == 0 {
			t.Errorf("%s: a program that is not known is not noticed: %q", name, said(r))
		}
		if r := command.Line(name); len(r.Commands) != 1 {
			t.Errorf("%s alone: %q", name, said(r))
		}
	}
}

// No known program makes the reader panic, with few words or odd ones.
func TestEveryOpenerOnOddWords(t *testing.T) {
	odd := []string{"", "-", "--", "-c", "-x", "--exec", "-e", "=", "a=b", "-I", "{}", ";", "+", "|", "-o", "ProxyCommand=", "exec", "run", "dlx"}
	some := testkit.Load(len(odd), 8) // with the race detector each name gets other ones
	for _, name := range slices.Concat(command.Openers(), command.Programs(), command.Interpreters) {
		try := func(odd ...string) {
			argv := append(strings.Fields(name), odd...)
			if r := command.Argv(argv); len(r.Commands)+len(r.Outer)+len(r.Findings) == 0 {
				t.Fatalf("%q: nothing was found", argv)
			}
		}
		try()
		for _, a := range odd[:some] {
			try(a)
			for _, b := range odd[:some] {
				try(a, b)
				try(a, b, a)
			}
		}
		odd = append(odd[1:], odd[0])
	}
}

// Every option that takes code is noticed: alone, with its value attached, after other
// options, and under any name of the interpreter.
func TestEveryInterpreter(t *testing.T) {
	names := map[string][]string{}
	for _, name := range command.Interpreters {
		names[name] = []string{name, "/usr/bin/" + name, strings.ToUpper(name)}
	}
	for alias, name := range command.Aliases {
		names[name] = append(names[name], alias)
	}
	for name, all := range names {
		for _, option := range command.CodeOptions(name) {
			dash := "-"
			switch {
			case strings.HasPrefix(option, "/"):
				dash = ""
			case len(option) > 2:
				dash = "--"
			}
			for _, called := range all {
				for _, argv := range [][]string{{called, dash + option, "code"}, {called, "-q", dash + option, "code"}} {
					if r := command.Argv(argv); !r.Has(command.InlineCode) {
						t.Errorf("%q: %q", argv, said(r))
					}
				}
			}
		}
		for _, called := range all {
			if r := command.Argv([]string{called, "file"}); r.Has(command.InlineCode) {
				t.Errorf("%s file: %q", called, said(r))
			}
		}
	}
	for _, called := range []string{"python3.12", "python2", "node18", "perl5.36", "lua5.4", "PYTHON.EXE", `C:\Python\python.exe`} {
		for _, option := range []string{"-c", "-e"} {
			if r := command.Argv([]string{called, option, "1"}); r.Has(command.InlineCode) {
				goto next
			}
		}
		t.Errorf("%s: its code is not noticed", called)
	next:
	}
}
