package main

import (
	"os"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// noCommand are texts that look like a person's command: beginnings of signatures, and
// commands that the daemon starts.
var noCommand = map[string]bool{"tether pairing v1": true, "tether confine": true, "tether holder": true}

// The commands in the README and docs/ exist, with these flags; a block's lines have the
// right number of arguments, too.
func TestCommandsOfTheDocs(t *testing.T) {
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	all := testkit.DocCommands(t, "../..", "tether")
	blocks := 0
	for _, d := range all {
		if d.Whole {
			blocks++
		}
		if noCommand[d.Text] {
			continue
		}
		c, left, err := newRoot(a).Find(d.Args)
		if err == nil {
			err = c.ParseFlags(left)
		}
		if err == nil && (d.Whole || !c.HasParent()) {
			err = c.ValidateArgs(c.Flags().Args())
		}
		if err != nil && !strings.Contains(err.Error(), "help requested") && (d.Whole || !strings.Contains(err.Error(), "needs an argument")) {
			t.Errorf("%s: %q: %v", d.Page, d.Text, err)
		}
	}
	if len(all) < 80 || blocks < 20 {
		t.Errorf("found only %d commands, %d in blocks", len(all), blocks)
	}
}

// From the binary to a daemon that is paired, runs and starts at login it takes three
// commands, none of them as root.
func TestThreeCommands(t *testing.T) {
	readme := must.Get(os.ReadFile("../../README.md"))(t)
	_, text, _ := strings.Cut(string(readme), "## Start at login")
	_, text, _ = strings.Cut(text, "```sh\n")
	text, _, _ = strings.Cut(text, "```")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > 3 || strings.Contains(text, "sudo") || strings.Contains(text, "/usr/") ||
		!strings.Contains(text, "\ntether pair wss://") || !strings.HasSuffix(text, "\ntether service install\n") {
		t.Errorf("the README says:\n%s", text)
	}
}

// Every command stands in the README's table, and everything there is a command.
func TestReadmeListsEveryCommand(t *testing.T) {
	readme := must.Get(os.ReadFile("../../README.md"))(t)
	_, section, _ := strings.Cut(string(readme), "\n## Commands\n")
	section, _, _ = strings.Cut(section, "\n## ")
	listed := map[string]bool{}
	for line := range strings.Lines(section) {
		cell, found := strings.CutPrefix(line, "| `")
		if !found {
			continue
		}
		cell, _, _ = strings.Cut("`"+cell, " | ")
		for i, word := range strings.Split(cell, "`") {
			if i%2 == 1 && word[0] != '[' { // an argument of the words before it
				listed[strings.Fields(word)[0]] = true
			}
		}
	}
	root := newRoot(newApp(nil, os.Stdout, os.Stderr))
	there := map[string]bool{}
	for _, c := range root.Commands() {
		there[c.Name()] = true
		if c.IsAvailableCommand() && !listed[c.Name()] && c.Name() != "version" && c.Name() != "completion" && c.Name() != "help" {
			t.Errorf("the README does not say what tether %s is for", c.Name())
		}
	}
	for name := range listed {
		if !there[name] {
			t.Errorf("the README lists tether %s, which is no command", name)
		}
	}
	if len(listed) < 20 {
		t.Errorf("only %d commands were found", len(listed))
	}
}
