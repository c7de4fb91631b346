package xterm

import (
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
)

// Pieces are the parts of random streams. Each %d is replaced by a random number below
// 12, and %% by %.
var Pieces = []string{
	"a", "bc", "hello world", " ", "\r\n", "\r\n", "\n", "\r", "\b", "\t", "世界", "é", "ae\u0301", "🙂", "✓ │", "\x0e", "\x0f", "\x1b(0", "\x1b(B", "\x1b)0",
	"\x1b[%dA", "\x1b[%dB", "\x1b[%dC", "\x1b[%dD", "\x1b[%dE", "\x1b[%dF", "\x1b[%dG", "\x1b[%d;%dH", "\x1b[%d;%df", "\x1b[%dd", "\x1b[%d`",
	"\x1b[%da", "\x1b[%de", "\x1b[%dI", "\x1b[%dZ", "\x1b[%d@", "\x1b[%dP", "\x1b[%dX", "\x1b[%dL", "\x1b[%dM", "\x1b[%dS", "\x1b[%dT", "x\x1b[%db",
	"\x1b[J", "\x1b[1J", "\x1b[2J", "\x1b[K", "\x1b[1K", "\x1b[2K", "\x1b[%d;%dr", "\x1b[r", "\x1b7", "\x1b8", "\x1b[s", "\x1b[u", "\x1bD", "\x1bE",
	"\x1bM", "\x1bH", "\x1b[g", "\x1b[3g", "\x1b[?7l", "\x1b[?7h", "\x1b[4h", "\x1b[4l", "\x1b[?45h", "\x1b[?45l",
	"\x1b[?47h", "\x1b[?47l", "\x1b[?1049h", "\x1b[?1049l", "\x1b[31;1m", "\x1b[38:2::1:2:3m", "\x1b[m", "\x1b[48;5;%dm", "\x1b[7m", "\x1b[4:3;58;2;1;2;3m", "\x1b[4m",
	"\x1b[24m", "\x1b[9;53m", "\x1b[44m", "\x1b[49m", "\x1b[0;3%dm", "\x1b[97;2;3;5m", "\x1b]0;a title\x07", "\x1b]8;;http://x\x1b\\", "\x1b]8;id=a;http://y\x1b\\",
	"\x1b]8;;\x1b\\", "\x1bP1$qm\x1b\\", "\x1b_x\x1b\\",
	"\x1b[?25l", "\x1b[?25h", "\x1b[c", "\x1b[6n", "\x1b=", "\x1b>", "\x1b[!p", "\x1bc", "\x1b[", "\x1b[12", "\x18", "\x1b", "\x1b[>4;2m", "\x1b[?2004h", "\x1b[1;2;3;4;5z",
	"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "\a", "\x1b#3", "\x1b#8", "\x1b[ q", "\x1b[1 q", "\x1b[?5W", "\x1b[<u", "\x1b[=1u", "\x1b%%G", "\x1b[?1h", "\x1b[?1l", "\x1b[?1000h",
	"\x1b[?1003;1006h", "\x1b[?1004h", "\x1b[20h", "\x1b[20l", "\x1b[1\"q", "\x1b[2\"q", "\x1b[?J", "\x1b[?1K", "\x1b[%d @", "\x1b[%d A", "\x1b[%d'}", "\x1b[%d'~",
}

// kinds are groups of pieces that are not mixed with each other, because a Dump does not
// show all of the terminal's state after them, or because xterm.js differs from other
// terminals. A stream has pieces of at most one group.
var kinds = [][]string{
	{"\x1b[?7l"}, // it can leave half a wide character
	{"\x1b[?6h", "\x1b[?6l"},
	// A saved cursor contains only the character set in use, and of underlines and links
	// only whether there are any.
	{"\x1b7", "\x1b8", "\x1b[s", "\x1b[u", "\x1b[?1049h", "\x1b[?1049l"},
	{"\x0e", "\x0f", "\x1b(0", "\x1b(B", "\x1b)0"},
	{"\x1b[4:3;58;2;1;2;3m", "\x1b[4m", "\x1b]8;;http://x\x1b\\", "\x1b]8;id=a;http://y\x1b\\"},
}

// alternate are the pieces that show the alternate screen. If the number of rows shrank
// before, xterm.js 6.0.0 keeps lines above the alternate screen.
var alternate = []string{"\x1b[?47h", "\x1b[?1049h"}

// Screen is one of our screens, which gets a stream while the stream is made.
type Screen interface {
	io.Writer
	Resize(cols, rows int)
	Breaks(cols int) bool // reports whether the width cols would break lines, or hide a part of the alternate screen
}

// Widths are the widths of the characters in Pieces, for Show.
const Widths = "300-36f-0,4e00-9fff-2,1f300-1faff-2"

// Wider returns a Screen for tests that cannot look into one of our screens: it reports
// that every smaller width breaks lines.
func Wider(cols, _ int) Screen { return &wider{cols} }

type wider struct{ cols int }

func (w *wider) Write(p []byte) (int, error) { return len(p), nil }
func (w *wider) Resize(cols, _ int)          { w.cols = cols }
func (w *wider) Breaks(cols int) bool        { return cols < w.cols }

// Random returns random output of a program, with changes of the size if sizes is true.
// begin returns a blank screen of a size.
func Random(rng *rand.Rand, sizes bool, begin func(cols, rows int) Screen) Stream {
	return random(rng, 0, sizes, begin)
}

// Long is Random with about so many bytes: between the pieces, the program redraws the
// beginning of its line again and again.
func Long(rng *rand.Rand, bytes int, sizes bool, begin func(cols, rows int) Screen) Stream {
	return random(rng, bytes, sizes, begin)
}

// random returns a stream of some pieces with about so many bytes between them in total.
func random(rng *rand.Rand, between int, sizes bool, begin func(cols, rows int) Screen) Stream {
	s := Stream{Cols: 2 + rng.IntN(20), Rows: 2 + rng.IntN(8)}
	kind, shrinks := rng.IntN(len(kinds)), rng.IntN(2) == 0
	now, rows := begin(s.Cols, s.Rows), s.Rows
	n := 1 + rng.IntN(40)
	for range n {
		if redraw := redraws(rng, between/n); len(redraw) > 0 {
			s.Parts = append(s.Parts, Part{Data: redraw})
			now.Write(redraw)
		}
		if sizes && rng.IntN(12) == 0 {
			// Widths that break lines are left out: xterm.js 6.0.0 without scrollback
			// then miscounts the rows of the main screen or throws, and keeps the
			// invisible rows of the alternate screen.
			if p := (Part{Cols: 2 + rng.IntN(20), Rows: 2 + rng.IntN(8)}); !now.Breaks(p.Cols) && (shrinks || p.Rows >= rows) {
				rows = p.Rows
				s.Parts = append(s.Parts, p)
				now.Resize(p.Cols, p.Rows)
			}
			continue
		}
		p := Pieces[rng.IntN(len(Pieces))]
		if i := slices.IndexFunc(kinds, func(k []string) bool { return slices.Contains(k, p) }); i >= 0 && i != kind || sizes && shrinks && slices.Contains(alternate, p) {
			continue
		}
		p = strings.ReplaceAll(p, "%%", "%")
		for strings.Contains(p, "%d") {
			p = strings.Replace(p, "%d", fmt.Sprint(rng.IntN(12)), 1)
		}
		s.Parts = append(s.Parts, Part{Data: []byte(p)})
		now.Write([]byte(p))
	}
	return s
}

// redraws returns n bytes, or one more, that write over the first column of a line.
func redraws(rng *rand.Rand, n int) (p []byte) {
	for len(p) < n {
		p = append(p, '\r', byte('a'+rng.IntN(26)))
	}
	return p
}
