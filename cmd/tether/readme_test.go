package main

import (
	"os"
	"strings"
	"testing"
)

// Every command stands in the README's table, and everything there is a command.
func TestReadmeListsEveryCommand(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
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
	root := newRoot(&app{stdout: os.Stdout, stderr: os.Stderr})
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
