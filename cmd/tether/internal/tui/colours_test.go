package tui

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestColouredLines(t *testing.T) {
	for _, c := range []struct {
		name, printed string
		want          []string // nil: it needs a screen
	}{
		{"plain", "a\r\nb\r\n", []string{"a", "b"}},
		{"a colour", "\x1b[32mok\x1b[0m all\r\n", []string{"\x1b[0;32mok\x1b[0m all"}},
		{"over lines", "\x1b[31mred\r\nstill\x1b[0m no\r\n", []string{"\x1b[0;31mred\x1b[0m", "\x1b[0;31mstill\x1b[0m no"}},
		{"titles and links", "\x1b]0;title\ax\x1b]8;;file:///etc\x1b\\link\x1b]8;;\x1b\\", []string{"xlink\x1b[0m"}},
		{"modes", "\x1b[?25lx\x1b[?2004h\x1b[K", []string{"x"}},
		{"controls and hidden characters", "a\x07\x00b\u202ec\x9bd", []string{"abc\ufffdd"}},
		{"tabs", "a\tb", []string{"a       b"}},
		{"the cursor moves", "a\x1b[2Ab", nil},
		{"it is cleared", "a\x1b[2J", nil},
		{"another screen", "\x1b[?1049hx", nil},
		{"a progress bar", "10%\r20%\r\n", []string{"20%"}},
		{"a step back", "a\bb", []string{"b"}},
	} {
		got, ok := colouredLines([]byte(c.printed))
		if diff := cmp.Diff(c.want, got); diff != "" || ok != (c.want != nil) {
			t.Errorf("%s: %t (-want +got)\n%s", c.name, ok, diff)
		}
	}
}
