package main

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"tether/agent/local"
)

// For any command, unknown arguments and flags are a wrong command line, and nothing is done.
func TestWrongCommandLines(t *testing.T) {
	a := &app{stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr}
	seen := 0
	var walk func(c *cobra.Command, path []string)
	walk = func(c *cobra.Command, path []string) {
		seen++
		many := slices.Repeat([]string{"x"}, 40)
		switch err := c.ValidateArgs(many); {
		case err == nil && !strings.Contains(c.Use, "…"):
			t.Errorf("tether %s takes %d arguments; its use is %q", strings.Join(path, " "), len(many), c.Use)
		case err != nil && exitStatus(t.Context(), err) != local.ExitUsage:
			t.Errorf("tether %s x x x…: exit status %d (%v), want %d", strings.Join(path, " "), exitStatus(t.Context(), err), err, local.ExitUsage)
		case err != nil && hintFor(err) == "":
			t.Errorf("tether %s x x x…: %v, and no hint", strings.Join(path, " "), err)
		}
		root := newRoot(a)
		root.SetArgs(append(slices.Clone(path), "--no-such-flag"))
		if err := root.ExecuteContext(t.Context()); err == nil || exitStatus(t.Context(), err) != local.ExitUsage {
			t.Errorf("tether %s --no-such-flag: exit status %d (%v), want %d", strings.Join(path, " "), exitStatus(t.Context(), err), err, local.ExitUsage)
		}
		for _, sub := range c.Commands() {
			walk(sub, append(slices.Clone(path), sub.Name()))
		}
	}
	walk(newRoot(a), nil)
	if seen < 60 {
		t.Errorf("only %d commands were looked at", seen)
	}
}
