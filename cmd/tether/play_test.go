package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// Another person's recording is played in this way, too.
func TestPlayedTextIsSafeAtATerminal(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	name := filepath.Join(t.TempDir(), "x.cast")
	cast := "{\"version\":3,\"term\":{\"cols\":80,\"rows\":24}}\n[0.01,\"o\",\"before \\u001b]52;c;ZXZpbA==\\u0007 behind\"]\n"
	must.Do(t, os.WriteFile(name, []byte(cast), 0o600))
	p := sit(t, "play", name)
	p.exits(0)
	if got := p.shown(); !strings.Contains(got, "before ") || !strings.Contains(got, " behind") || strings.Contains(got, "]52;c;") {
		t.Errorf("played %q", got)
	}
	if out, status := command(t, "play", name); status != 0 || !strings.Contains(out, "\x1b]52;c;ZXZpbA==\a") {
		t.Errorf("into a pipe: %d %q", status, out)
	}
}
