package local_test

import (
	"slices"
	"strings"
	"testing"

	"tether/agent/local"
	"tether/agent/redact"
	"tether/agent/term"
)

// The screen contains all that a program has drawn, even if the log has not kept it; agents see it masked.
func TestScreenOfATerminal(t *testing.T) {
	rules, err := redact.Compile(redact.Options{Tokens: true})
	if err != nil {
		t.Fatal(err)
	}
	w := serve(t, local.Options{}, term.Options{LogBytes: 256 << 10, Outward: rules})
	agent := w.client.As("claude")
	f := w.uiOf(agent)
	m, child := w.spawn("counter")
	f.ask("pty:attach", m.ID) // from now on output is searched for secrets
	f.nextOf("pty:attached")
	counter(child, 40_000)
	child.Print("\r\n\x1b[31m" + hushedToken + "\x1b[m")
	want := "THE HEADER\n\n\ncounter 39999\n" + hushedToken
	var s local.Screen
	for s.Text != want {
		if s, err = w.client.Screen(t.Context(), m.ID, true); err != nil {
			t.Fatal(err)
		}
	}
	if s.Cols != 80 || s.Rows != 24 || s.CursorRow != 4 || s.CursorCol != len(hushedToken) || s.Truncated || s.Masked != 0 {
		t.Errorf("it is %+v", s)
	}
	if wantRows := []string{"THE HEADER", "", "", "counter 39999", "\x1b[0;31m" + hushedToken + "\x1b[0m"}; !slices.Equal(s.Coloured, wantRows) {
		t.Errorf("with colours it is %q", s.Coloured)
	}
	child.Print("\r\n") // ends a possible secret
	for s.CursorRow < 5 {
		if s, err = agent.Screen(t.Context(), m.ID, true); err != nil {
			t.Fatal(err)
		}
	}
	if s.Masked == 0 || s.Truncated || strings.Contains(s.Text+strings.Join(s.Coloured, ""), hushedToken) || !strings.HasPrefix(s.Text, "THE HEADER") {
		t.Errorf("an agent sees %+v", s)
	}
}
