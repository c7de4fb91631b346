package screen

import (
	"bytes"
	"slices"
	"strings"
)

// MaxHistory bounds what is kept of the lines that have left the screen, in
// bytes of text; the oldest go first.
const MaxHistory = 1 << 20

// maxSide bounds both dimensions in cells, as terminals of ours are bounded.
const maxSide = 1000

// Screen is the text of one terminal. Use New.
type Screen struct {
	cols, rows int
	main, alt  grid
	on         *grid // main or alt
	tabs       []bool
	history    []byte
	dropped    bool // history has lost its beginning
	redrawn    bool // the program has moved the cursor back or erased something: what the screen shows may still change

	pen    pen
	saved  [2]pen // of main and alt
	insert bool
	wrap   bool // at the right margin a line goes on below
	last   rune // the character just printed, which REP repeats, or 0

	parser parser
}

// pen is where and how the next character is put.
type pen struct {
	col, row int  // col is cols when the last column was written: the next character goes below
	origin   bool // rows count from the scrolling region
	charset  [4]bool
	shift    int // which of them is used
}

// New returns an empty screen; sizes are brought into 1 to 1000.
func New(cols, rows int) *Screen {
	s := &Screen{}
	s.cols, s.rows = side(cols), side(rows)
	s.reset()
	return s
}

func side(n int) int { return min(max(n, 1), maxSide) }

func (s *Screen) reset() {
	s.main, s.alt = newGrid(s.rows), newGrid(s.rows)
	s.on = &s.main
	s.pen, s.saved = pen{}, [2]pen{}
	s.insert, s.wrap, s.last = false, true, 0
	s.setTabs()
}

func (s *Screen) setTabs() {
	s.tabs = make([]bool, s.cols)
	for i := 8; i < s.cols; i += 8 {
		s.tabs[i] = true
	}
}

// Resize changes the size. What no longer fits above goes to the history, what
// no longer fits to the right is only out of sight.
func (s *Screen) Resize(cols, rows int) {
	cols, rows = side(cols), side(rows)
	if cols == s.cols && rows == s.rows {
		return
	}
	if off := s.pen.row - rows + 1; off > 0 {
		s.on.top, s.on.bottom = 0, s.rows-1
		s.scrollUp(off)
		s.pen.row -= off
	}
	s.cols, s.rows = cols, rows
	s.main.resize(rows)
	s.alt.resize(rows)
	s.pen.col = min(s.pen.col, cols-1)
	s.setTabs()
}

// Cursor returns where the next character goes, counted from 0.
func (s *Screen) Cursor() (col, row int) { return min(s.pen.col, s.cols-1), s.pen.row }

// Size returns the size in cells.
func (s *Screen) Size() (cols, rows int) { return s.cols, s.rows }

// Text returns the rows of the screen without the blanks at their ends and
// without the empty rows at the bottom, joined by newlines.
func (s *Screen) Text() string {
	var b []byte
	for i := range s.on.filled() {
		if i > 0 {
			b = append(b, '\n')
		}
		b = s.on.lines[i].appendUpTo(b, s.cols, true)
	}
	return string(bytes.TrimRight(b, "\n"))
}

// History returns all text since the beginning, oldest first: lines that have
// left the screen, what was erased from it as a whole, and what it shows. Lines
// that were broken at the right margin are whole again. trimmed tells that
// more than MaxHistory had left and the beginning is missing.
func (s *Screen) History() (text string, trimmed bool) {
	b := slices.Clone(s.history)
	b = s.appendGrid(b, &s.main)
	if s.on == &s.alt {
		if len(b) > 0 && b[len(b)-1] != '\n' {
			b = append(b, '\n')
		}
		b = s.appendGrid(b, &s.alt)
	}
	return string(b), s.dropped
}

// Lines returns History's text, and the length of its beginning that is final: lines that have left the screen and, as long as the
// program has only printed one line after the other, those that it has ended.
func (s *Screen) Lines() (text string, final int) {
	text, _ = s.History()
	if s.redrawn || s.on == &s.alt {
		return text, len(s.history)
	}
	return text, strings.LastIndexByte(text, '\n') + 1
}

// Keep drops all but the newest lines, at most n bytes, of those that have left
// the screen.
func (s *Screen) Keep(n int) {
	cut := len(s.history) - n
	if cut <= 0 {
		return
	}
	if s.history[cut-1] != '\n' {
		i := bytes.IndexByte(s.history[cut:], '\n')
		if i < 0 {
			i = len(s.history) - cut - 1
		}
		cut += i + 1
	}
	s.history = append(s.history[:0], s.history[cut:]...)
	s.dropped = true
}

// appendGrid appends the lines of g. The one that the cursor stands on, if it
// is the last, has no newline, but the blanks before the cursor: what comes
// next may be a part of it.
func (s *Screen) appendGrid(b []byte, g *grid) []byte {
	n := g.filled()
	here := -1 // the cursor's row
	if g == s.on {
		here = s.pen.row
	}
	for i := range n {
		l := &g.lines[i]
		b = l.appendTo(b, !l.wrapped)
		switch {
		case i == n-1 && i == here:
			b = pad(b, s.pen.col-l.width())
		case !l.wrapped || i == n-1:
			b = append(b, '\n')
		}
	}
	switch {
	case here == n: // a blank line
		b = pad(b, s.pen.col)
	case n == 0 && here > 0:
		b = append(b, '\n')
	}
	return b
}

// pad appends n blanks, if any.
func pad(b []byte, n int) []byte {
	for ; n > 0; n-- {
		b = append(b, ' ')
	}
	return b
}

// archive appends a line to the history.
func (s *Screen) archive(l *line) {
	s.history = l.appendTo(s.history, !l.wrapped)
	if !l.wrapped {
		s.history = append(s.history, '\n')
	}
	if len(s.history) > 2*MaxHistory {
		s.Keep(MaxHistory)
	}
}

// archiveAll keeps what the main screen shows before it is erased as a whole.
func (s *Screen) archiveAll() {
	if s.on != &s.main {
		return
	}
	for i := range s.main.filled() {
		s.archive(&s.main.lines[i])
	}
}

// Clean returns s without what text of one line should not hold: controls, and
// what the screen leaves out. It is for titles and the like.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || hidden(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
