package screen_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/xterm"
	"tether/screen"
)

// However much each byte of output can touch, the work that a program causes is bounded
// by the amount of its output.
func TestEffortIsBounded(t *testing.T) {
	text := testkit.Load(64<<10, 4<<10)
	large := testkit.Load(1000, 150)
	units := append(slices.Clone(xterm.Pieces), "\x1b#8", "\x1b[ @", "\x1b['}", "\x1b[?J", "\x1b[?2J", "\x1b[1;1H\x1b[L", "\x1b[4hx\r", "\x1b[M", "\x1bM", "\n", "\x1bc", "\x1b[?47h\x1b[?47l",
		"\x1b[41m\x1b[1K\x1b[K", "a\x1b[999b", "\x1b[3g\x1b[999I\x1b[999Z", "\x1b[2;999r\x1b[2;1H\x1b[T", "\x1b[999S", "\x1b]8;;http://%d\x1b\\x", "\x1b[@", "\x1b[P", "\x1b[999X", "\x1b[1J")
	for _, size := range [][2]int{{80, 24}, {large, large}} {
		full := screen.NewState(size[0], size[1])
		full.Write(bytes.Repeat([]byte("full "), size[0]*size[1]/5))
		full.Write([]byte("\x1b[500;500H"))
		for _, unit := range units {
			unit = strings.ReplaceAll(unit, "%%", "%")
			p := bytes.Repeat([]byte(strings.ReplaceAll(unit, "%d", "7")), text/len(unit))
			s := full.Clone()
			before := s.Effort()
			s.Write(p)
			if done, most := s.Effort()-before, len(p)*screen.EffortPerByte+screen.EffortSaved; done > most {
				t.Errorf("%q at %dx%d: %d cells for %d bytes, want at most %d", unit, size[0], size[1], done, len(p), most)
			}
		}
	}
}

// Omitted work is reported, and the work of real programs is never omitted: all of the
// largest screen at once, and edits of each character.
func TestEffortSuffices(t *testing.T) {
	for _, c := range []struct {
		name, unit string
		times      int
		doubtful   bool
	}{
		{"a test picture", "\x1b#8", 3, false},
		{"test pictures without end", "\x1b#8", 10, true},
		{"characters that are inserted", "\x1b[4hx\x1b[4l", testkit.Load(10000, 2000), false},
		{"lines that are inserted in a region", "\x1b[2;999r\x1b[2;1H\x1b[Lhello", testkit.Load(10000, 2000), false},
		{"empty lines in a region", "\n", testkit.Load(100000, 20000), false},
		{"columns that are inserted", "\x1b['}", 3, false},
	} {
		s := screen.NewState(1000, 1000)
		s.Write([]byte("\x1b[?1049h\x1b[2;1000r\x1b[1000;1H"))
		s.Write([]byte(strings.Repeat(c.unit, c.times)))
		if s.Doubtful() != c.doubtful {
			t.Errorf("%s: in doubt %v", c.name, s.Doubtful())
		}
	}
}
