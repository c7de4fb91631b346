package main

import (
	"os"
	"strings"
	"testing"

	"tether/internal/testkit"
)

// noCommand are texts that look like a person's command: beginnings of signatures, and commands that the daemon starts.
var noCommand = map[string]bool{"tether pairing v1": true, "tether confine": true, "tether holder": true}

// The commands in the README and docs/ exist, with these flags; a block's lines have the right number of arguments, too.
func TestCommandsOfTheDocs(t *testing.T) {
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
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

// From the binary to a daemon that is paired, runs and starts at login it takes three commands, none of them as root.
func TestThreeCommands(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(readme), "## Start at login")
	_, text, _ = strings.Cut(text, "```sh\n")
	text, _, _ = strings.Cut(text, "```")
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) > 3 || strings.Contains(text, "sudo") || strings.Contains(text, "/usr/") ||
		!strings.Contains(text, "\ntether pair wss://") || !strings.HasSuffix(text, "\ntether service install\n") {
		t.Errorf("the README says:\n%s", text)
	}
}
