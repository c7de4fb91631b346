package local_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tether/agent/local"
	"tether/agent/term"
	"tether/internal/testkit"
)

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

// counter acts like a full-screen program that draws a header once, and then one line for ever: n times.
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

// Text that a program has drawn long ago is on the screen, although the log has not kept it.
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
