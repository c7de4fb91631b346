package view

import (
	"strings"
	"testing"
)

func TestModes(t *testing.T) {
	for _, c := range []struct{ name, printed, want string }{
		{"nothing", "plain text", ""},
		{"alternate screen", "\x1b[?1049hx", "\x1b[?1049l"},
		{"left again", "\x1b[?1049hx\x1b[?1049l", ""},
		{"hidden cursor", "\x1b[?25l", "\x1b[?25h"},
		{"last first", "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"},
		{"several at once", "\x1b[?1000;1006h", "\x1b[?1006l\x1b[?1000l"},
		{"twice", "\x1b[?2004h\x1b[?2004h", "\x1b[?2004l"},
		{"unknown mode", "\x1b[?777h", ""},
		{"not private", "\x1b[25l", ""},
		{"colour", "\x1b[31mred", "\x1b[0m"},
		{"colour reset", "\x1b[1;31mred\x1b[m", ""},
		{"colour reset in full", "\x1b[31mred\x1b[0m", ""},
		{"full reset", "\x1b[?1049h\x1b[31m\x1bc", ""},
		{"unfinished", "\x1b[?10", "\x18"},
		{"overlong", "\x1b[?" + strings.Repeat("1", 100) + "h", ""},
		{"interrupted", "\x1b[?\x1b[?25l", "\x1b[?25h"},
		{"other escape", "\x1b(B\x1b7", ""},
		{"unfinished intermediate", "\x1b(", "\x18"},
		{"unfinished title", "\x1b]2;tit", "\x18"},
		{"title to BEL", "\x1b]2;title\x07", ""},
		{"title to ST", "\x1b]2;title\x1b\\", ""},
		{"unfinished image", "\x1bPq#0;2;0\x07", "\x18"},
		{"image", "\x1bPq#0;2;0\x1b\\", ""},
		{"cancelled", "\x1b]2;tit\x18\x1b[?25\x1a", ""},
		{"control within a sequence", "\x1b[?2\n5l", "\x1b[?25h"},
		{"unfinished with another prefix", "\x1b[>4;2", "\x18"},
		{"another prefix", "\x1b[>4;2m\x1b[?25$p", ""},
	} {
		var m Modes
		for i := range len(c.printed) {
			m.Write([]byte{c.printed[i]})
		}
		if got := string(m.Restore()); got != c.want {
			t.Errorf("%s, byte by byte: %q, want %q", c.name, got, c.want)
		}
		m.Write([]byte(c.printed))
		if got := string(m.Restore()); got != c.want {
			t.Errorf("%s, at once: %q, want %q", c.name, got, c.want)
		}
	}
}

func FuzzModes(f *testing.F) {
	f.Add([]byte("\x1b[?1049h\x1b[31mx\x1b[?25l"), 7)
	f.Fuzz(func(t *testing.T, printed []byte, at int) {
		var whole, parts Modes
		whole.Write(printed)
		at = min(max(at, 0), len(printed))
		parts.Write(printed[:at])
		parts.Write(printed[at:])
		a, b := whole.Restore(), parts.Restore()
		if string(a) != string(b) {
			t.Errorf("%q split at %d: %q and %q", printed, at, a, b)
		}
		whole.Write(printed)
		whole.Write(a)
		if left := whole.Restore(); len(left) > 0 {
			t.Errorf("%q put back by %q leaves %q", printed, a, left)
		}
	})
}
