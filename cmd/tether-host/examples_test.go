package main

import (
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"tether/internal/testkit"
)

// Each command shows how it is used, and each example is a command line that it takes.
func TestExamples(t *testing.T) {
	root := func() *cobra.Command { return newRoot(strings.NewReader(""), io.Discard, io.Discard) }
	used := map[string]bool{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		used[c.CommandPath()] = true
		if !c.HasSubCommands() && !c.Hidden && c.Example == "" {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for line := range strings.Lines(c.Example) {
			words := strings.Fields(line)
			for len(words) > 0 && words[0] != "tether-host" { // an agent's program that starts it
				words = words[1:]
			}
			for i, word := range words {
				if word == ">" {
					words = words[:i]
					break
				}
			}
			if len(words) == 0 {
				t.Errorf("%s: %q runs something else", c.CommandPath(), line)
				continue
			}
			found, left, err := root().Find(words[1:])
			if err == nil {
				if err = found.ParseFlags(left); err == nil {
					err = found.ValidateArgs(found.Flags().Args())
				}
			}
			if err != nil || found.CommandPath() != c.CommandPath() {
				t.Errorf("%q of %s: %v", line, c.CommandPath(), err)
			}
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(root())
	for path := range examples {
		if !used[path] {
			t.Errorf("there is no %s", path)
		}
	}
}

// The commands in the README and docs/ exist, with these flags.
func TestCommandsOfTheDocs(t *testing.T) {
	all := testkit.DocCommands(t, "../..", "tether-host")
	for _, d := range all {
		c, left, err := newRoot(strings.NewReader(""), io.Discard, io.Discard).Find(d.Args)
		if err == nil {
			if err = c.ParseFlags(left); err == nil && d.Whole {
				err = c.ValidateArgs(c.Flags().Args())
			}
		}
		if err != nil {
			t.Errorf("%s: %q: %v", d.Page, d.Text, err)
		}
	}
	if len(all) < 20 {
		t.Errorf("found only %d commands", len(all))
	}
}
