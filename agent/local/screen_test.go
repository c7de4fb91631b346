package local_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/redact"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// The screen contains all that a program has drawn, even if the log has not kept it;
// agents see it masked.
func TestScreenOfATerminal(t *testing.T) {
	rules, err := redact.Compile(redact.Options{Tokens: true})
	must.Do(t, err)
	w := serve(t, local.Options{}, term.Options{LogBytes: 256 << 10, Outward: rules})
	agent := w.client.As("claude")
	f := w.uiOf(agent)
	m, child := w.spawn("counter")
	f.ask("pty:attach", m.ID) // from now on output is searched for secrets
	f.nextOf("pty:attached")
	counter(child, 40_000)
	child.Print("\r\n\x1b[31m" + hushedToken + "\x1b[m")
	want := "THE HEADER\n\n\ncounter 39999\n" + hushedToken
	var s localapi.Screen
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

// shown is read_terminal's description of a screen.
type shown struct {
	History   string
	Truncated bool
}

func (a *tools) screen(id string) (s shown) {
	a.t.Helper()
	text, isError := a.call("read_terminal", args{"terminalId": id, "format": "screen"})
	if err := json.Unmarshal([]byte(text), &s); err != nil || isError {
		a.t.Fatalf("%v: %s", err, text)
	}
	return s
}

// counter acts like a full-screen program that draws a header once, and then one line for
// ever: n times.
func counter(c *testkit.Child, n int) {
	c.Print("\x1b[?1049h\x1b[2J\x1b[HTHE HEADER\x1b[3;1H")
	for i := 0; i < n; {
		var b strings.Builder
		for ; i < n && b.Len() < 16<<10; i++ {
			fmt.Fprintf(&b, "\x1b[4;1H\x1b[Kcounter %d", i)
		}
		c.Print(b.String())
	}
}

// Text that a program has drawn long ago is on the screen, although the log has not kept
// it.
func TestScreenOfTrimmedLog(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{LogBytes: 256 << 10})
	m, child := w.spawn("counter")
	counter(child, 80_000)
	a := w.agent("")
	testkit.Eventually(t, patience, "the last line", func() bool {
		s := a.screen(m.ID)
		return s == shown{History: "THE HEADER\n\n\ncounter 79999"}
	})
	child.Print("\x1b[?1049l")
	testkit.Eventually(t, patience, "the main screen", func() bool { return a.screen(m.ID) == shown{} })
}
