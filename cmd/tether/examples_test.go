package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Each command shows how it is used, and each example is a command line that the command
// takes.
func TestExamples(t *testing.T) {
	a := newApp(os.Stdin, os.Stdout, os.Stderr)
	used := map[string]bool{}
	var walk func(c *cobra.Command, path string)
	walk = func(c *cobra.Command, path string) {
		used[path] = true
		if path != "" && !c.HasSubCommands() && !c.Hidden && c.Example == "" {
			t.Errorf("tether %s has no example", path)
		}
		for line := range strings.Lines(c.Example) {
			checkExample(t, a, path, strings.TrimSpace(line))
		}
		for _, sub := range c.Commands() {
			walk(sub, strings.TrimSpace(path+" "+sub.Name()))
		}
	}
	walk(newRoot(a), "")
	for _, all := range []map[string]string{examples, descriptions} {
		for path := range all {
			if !used[path] {
				t.Errorf("there is no tether %s", path)
			}
		}
	}
}

// checkExample reads an example as a shell and then the command would, up to the next
// command in a line.
func checkExample(t *testing.T, a *app, path, line string) {
	t.Helper()
	line = " " + line
	at := strings.Index(line, " tether ")
	if run := strings.Index(line, " -- tether "); run >= 0 { // another program is told to start us
		at = run + len(" --")
	}
	if at < 0 {
		t.Errorf("tether %s: the example %q runs something else", path, line)
		return
	}
	var args []string
	for _, word := range shellWords(line[at+len(" tether "):]) {
		if word == "|" || word == "<" || word == "&&" || word == ">" || strings.HasPrefix(word, "#") {
			break
		}
		args = append(args, word)
	}
	c, left, err := newRoot(a).Find(args) // a new one: flags keep their values
	if err != nil {
		t.Errorf("%s: %v", line, err)
		return
	}
	if err := c.ParseFlags(left); err != nil {
		t.Errorf("%s: %v", line, err)
	} else if err := c.ValidateArgs(c.Flags().Args()); err != nil {
		t.Errorf("%s: %v", line, err)
	}
	if got := strings.TrimPrefix(c.CommandPath(), "tether "); got != path {
		t.Errorf("the example %q of tether %s is one of tether %s", line, path, got)
	}
}

// shellWords are the words of a line without expansions.
func shellWords(line string) (words []string) {
	for i, part := range strings.Split(line, "'") {
		switch {
		case i%2 == 1 && len(words) > 0:
			words = append(words, part)
		default:
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}
