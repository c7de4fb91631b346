package tui

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestColouredLines(t *testing.T) {
	for _, c := range []struct {
		name, printed string
		want          []string // nil: it needs a screen
	}{
		{"plain", "a\r\nb\r\n", []string{"a", "b", ""}},
		{"a colour", "\x1b[32mok\x1b[0m all\r\n", []string{"\x1b[32mok\x1b[0m all", ""}},
		{"a short reset", "\x1b[1;31merror\x1b[m: x", []string{"\x1b[1;31merror\x1b[0m: x"}},
		{"over lines", "\x1b[31mred\r\nstill\x1b[0m no\r\n", []string{"\x1b[31mred\x1b[0m", "\x1b[31mstill\x1b[0m no", ""}},
		{"palettes", "\x1b[38;5;208ma\x1b[48:2::1:2:3mb", []string{"\x1b[38;5;208ma\x1b[48:2::1:2:3mb\x1b[0m"}},
		{"other uses of m", "\x1b[>4;2mkeys\x1b[?4mq", []string{"keysq"}},
		{"titles and links", "\x1b]0;title\ax\x1b]8;;file:///etc\x1b\\link\x1b]8;;\x1b\\", []string{"xlink"}},
		{"modes", "\x1b[?25lx\x1b[?2004h\x1b[K", []string{"x"}},
		{"controls and hidden characters", "a\x07\x00b\u202ec\x9bd", []string{"ab\ufffdc\ufffdd"}},
		{"tabs", "a\tb", []string{"a  b"}},
		{"umlauts", "\x1b[1mgr\u00fc\u00df\x1b[0me \u4f60", []string{"\x1b[1mgrüß\x1b[0me 你"}},
		{"the cursor moves", "a\x1b[2Ab", nil},
		{"it is cleared", "a\x1b[2J", nil},
		{"another screen", "\x1b[?1049hx", nil},
		{"a progress bar", "10%\r20%\r\n", nil},
		{"a step back", "a\bb", nil},
		{"too many", strings.Repeat("\x1b[31m", 100) + "x\r\ny", []string{strings.Repeat("\x1b[31m", 51) + "\x1b[0m" + strings.Repeat("\x1b[31m", 48) + "x\x1b[0m",
			strings.Repeat("\x1b[31m", 48) + "y\x1b[0m"}},
	} {
		got, ok := colouredLines([]byte(c.printed))
		if diff := cmp.Diff(c.want, got); diff != "" || ok != (c.want != nil) {
			t.Errorf("%s: %t (-want +got)\n%s", c.name, ok, diff)
		}
	}
}

// colour matches the sequences that a line may have.
var colour = regexp.MustCompile("\x1b\\[[0-9;:]*m")

// Nothing leaves but text and colours, and each line leaves the screen as it found it.
func FuzzColouredLines(f *testing.F) {
	for _, s := range []string{"\x1b[31mred\r\nstill\x1b[0m", "\x1b]0;t\a\x1b[38;5;1mx", "\x1b[1\x1b[2mx", "\u009b31mx", "a\x1b", "\x1b[3\n1mx"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, printed []byte) {
		lines, _ := colouredLines(printed)
		for _, l := range lines {
			text := colour.ReplaceAllString(l, "")
			if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 }) {
				t.Errorf("%q makes %q", printed, l)
			}
			if all := colour.FindAllString(l, -1); len(all) > 0 && all[len(all)-1] != plainStyle {
				t.Errorf("%q makes %q, which does not end plain", printed, l)
			}
		}
	})
}
