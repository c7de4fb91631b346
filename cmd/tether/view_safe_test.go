package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/ahp"
	"tether/internal/testkit"
)

// Others' output is shown to a person without sequences that act on their terminal, in any division; the rest is unchanged.
func TestSafeView(t *testing.T) {
	const good = "\x1b[31mred\x1b[0m \x1b]0;title\a\x1b]8;;https://x\alink\x1b]8;;\a é🙂\r\n"
	const bad = "\x1b[c|\x1b[6n|\x1b]52;c;ZXZpbA==\a|\x1b]11;?\a|\x1bP$qm\x1b\\|\x1b[21t|\x1b[5i|\x05|\x1b_Ga=q,i=1;AAAA\x1b\\|"
	for size := 1; size <= len(good+bad); size++ {
		var out strings.Builder
		v := newSafeView(&out)
		var piece []rune
		for _, r := range good + bad + good {
			if piece = append(piece, r); len(piece) == size {
				fmt.Fprint(v, string(piece))
				piece = piece[:0]
			}
		}
		fmt.Fprint(v, string(piece)+"\x1b]52;c;never ended")
		if err := v.Close(); err != nil {
			t.Fatal(err)
		}
		got := out.String()
		if strings.Count(got, good) != 2 {
			t.Fatalf("in pieces of %d: shown as %q", size, got)
		}
		for _, never := range strings.Split(strings.TrimSuffix(bad, "|"), "|") {
			if strings.Contains(got, never) {
				t.Errorf("in pieces of %d: %q is in %q", size, never, got)
			}
		}
	}
}

// A terminal gets it so; a file or another program gets everything.
func TestWatchedTextIsSafeAtATerminal(t *testing.T) {
	for _, isTTY := range []bool{true, false} {
		var out strings.Builder
		v := newPlainView(&out, isTTY, false)
		if err := v.resync(ahp.TerminalState{}); err != nil {
			t.Fatal(err)
		}
		if err := v.data([]byte("a\x1b[cb")); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); strings.Contains(got, "\x1b[c") == isTTY || !strings.HasPrefix(got, "a") || !strings.HasSuffix(got, "b") {
			t.Errorf("at a terminal: %v: %q", isTTY, got)
		}
	}
}

// Another person's recording is played in this way, too.
func TestPlayedTextIsSafeAtATerminal(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	name := filepath.Join(t.TempDir(), "x.cast")
	cast := "{\"version\":3,\"term\":{\"cols\":80,\"rows\":24}}\n[0.01,\"o\",\"before \\u001b]52;c;ZXZpbA==\\u0007 behind\"]\n"
	if err := os.WriteFile(name, []byte(cast), 0o600); err != nil {
		t.Fatal(err)
	}
	p := sit(t, "play", name)
	p.exits(0)
	if got := p.shown(); !strings.Contains(got, "before ") || !strings.Contains(got, " behind") || strings.Contains(got, "]52;c;") {
		t.Errorf("played %q", got)
	}
	if out, status := command(t, "play", name); status != 0 || !strings.Contains(out, "\x1b]52;c;ZXZpbA==\a") {
		t.Errorf("into a pipe: %d %q", status, out)
	}
}
