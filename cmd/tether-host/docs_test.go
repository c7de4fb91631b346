package main

import (
	"io"
	"strings"
	"testing"

	"tether/internal/testkit"
)

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
