package screen

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// history is the text that has left the main screen.
type history struct {
	kept    bool // the screen keeps a history
	lines   []byte
	dropped bool // the beginning was dropped, see MaxHistory
	redrawn bool // the program has moved the cursor back or erased something: the screen's text may still change
}

// appendTo appends the text of the first n columns. next is the row that continues the
// line; if it is nil, the blanks at the end are left out.
func (s *Screen) appendTo(b []byte, l *line, n int, next *line) []byte {
	end := len(b)
	links := linkText{s: s, begin: len(b), wrapped: l.wrapped, left: maxTargets}
	for i := range min(n, len(l.cells)) {
		c := &l.cells[i]
		if s.showLinks && s.linkOf(c) != links.link {
			b, end = links.change(b, end, s.linkOf(c))
		}
		code := c.ch & content
		switch {
		case code > ' ' && code < utf8.RuneSelf:
			b = append(b, byte(code))
			end = len(b)
		case code == 0 && c.width() == 0:
		case code == 0 || code == ' ':
			b = append(b, ' ')
		default:
			for _, r := range s.string(c.ch) {
				if !Hidden(r) {
					b = utf8.AppendRune(b, r)
					end = len(b)
				}
			}
		}
	}
	if links.link != 0 && (next == nil || len(next.cells) == 0 || s.linkOf(&next.cells[0]) != links.link) {
		b, end = links.change(b, end, 0)
	}
	if next == nil {
		return b[:end]
	}
	return b
}

// textWidth returns the number of columns up to the last column that is not blank.
func (l *line) textWidth() int {
	n := len(l.cells)
	for n > 0 && (l.cells[n-1].empty() && l.cells[n-1].width() > 0 || l.cells[n-1].ch&content == ' ') {
		n--
	}
	return n
}

// blank reports whether no character can be seen in the line.
func (l *line) blank() bool { return l.textWidth() == 0 }

// Text returns the rows of the screen without the blanks at their ends and without the
// empty rows at the bottom, joined by newlines.
func (s *Screen) Text() string {
	var b []byte
	for i := range s.on.filled() {
		if i > 0 {
			b = append(b, '\n')
		}
		b = s.appendTo(b, &s.on.lines[i], s.cols, nil)
	}
	return string(bytes.TrimRight(b, "\n"))
}

// History returns all text since the beginning, oldest first: lines that have left the
// screen, text erased with a whole screen, and the present text. Lines that were broken
// at the right margin are whole again. trimmed reports that more than MaxHistory had left
// and the beginning is missing.
func (s *Screen) History() (text string, trimmed bool) {
	b := slices.Clone(s.text.lines)
	b = s.appendGrid(b, &s.main)
	if s.on == &s.alt {
		if len(b) > 0 && b[len(b)-1] != '\n' {
			b = append(b, '\n')
		}
		b = s.appendGrid(b, &s.alt)
	}
	return string(b), s.text.dropped
}

// Lines returns the text of History, and the length of its beginning that is final. Lines
// that have left the screen are final. As long as the program has only printed line after
// line, all ended lines are final.
func (s *Screen) Lines() (text string, final int) {
	text, _ = s.History()
	if s.text.redrawn || s.on == &s.alt {
		return text, len(s.text.lines)
	}
	return text, strings.LastIndexByte(text, '\n') + 1
}

// Keep drops lines that have left the screen, the oldest first, until at most n bytes of
// them are left.
func (s *Screen) Keep(n int) {
	lines := s.text.lines
	cut := len(lines) - n
	if cut <= 0 {
		return
	}
	if lines[cut-1] != '\n' {
		i := bytes.IndexByte(lines[cut:], '\n')
		if i < 0 {
			i = len(lines) - cut - 1
		}
		cut += i + 1
	}
	s.text.lines = append(lines[:0], lines[cut:]...)
	s.text.dropped = true
}

// textCells returns how many cells of a row are text. A column that was left free because
// a wide character went to the next row is not text.
func (s *Screen) textCells(g *grid, i int) int {
	n := len(g.lines[i].cells)
	if g.goesOn(i) && n == s.cols && g.length(i, false, n) == n-1 {
		n--
	}
	return n
}

// goesOn reports whether a row continues in the next one.
func (g *grid) goesOn(i int) bool { return i+1 < len(g.lines) && g.lines[i+1].wrapped }

// appendGrid appends the lines of g. If the cursor is on the last line, later output may
// continue that line, so it gets the blanks before the cursor and no newline.
func (s *Screen) appendGrid(b []byte, g *grid) []byte {
	n := g.filled()
	here := -1 // the cursor's row
	if g == s.on {
		here = g.y
	}
	for i := range n {
		l := &g.lines[i]
		on := g.goesOn(i) && i < n-1
		var next *line
		if on {
			next = &g.lines[i+1]
		}
		b = s.appendTo(b, l, s.textCells(g, i), next)
		switch {
		case i == n-1 && i == here:
			b = pad(b, g.x-l.textWidth())
		case !on:
			b = append(b, '\n')
		}
	}
	switch {
	case here == n: // a blank line
		b = pad(b, g.x)
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

// archive appends the first n rows of g to the history. wrapped says that the next row,
// not printed yet, continues the last row of g.
func (s *Screen) archive(g *grid, n int, wrapped bool) {
	if !s.text.kept {
		return
	}
	b := s.text.lines
	for i := range n {
		l := &g.lines[i]
		var next *line
		if g.goesOn(i) {
			next = &g.lines[i+1]
		} else if i == len(g.lines)-1 && wrapped {
			next = &line{}
		}
		if b = s.appendTo(b, l, s.textCells(g, i), next); next == nil {
			b = append(b, '\n')
		}
	}
	s.text.lines = b
	if len(b) > 2*MaxHistory {
		s.Keep(MaxHistory)
	}
}

// archiveAll appends the main screen's text to the history. It is called before the whole
// screen is erased.
func (s *Screen) archiveAll() {
	if s.on == &s.main && s.text.kept {
		s.archive(&s.main, s.main.filled(), false)
	}
}

// Clean returns s without controls and without the characters that Text leaves out. It is
// for text of one line, such as titles.
func Clean(s string) string { return clean(s, "") }

// CleanLines is Clean for text of several lines: their ends and tabs stay.
func CleanLines(s string) string { return clean(s, "\n\t") }

func clean(s, but string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(but, r) {
			return r
		}
		if r < ' ' || r >= 0x7f && r < 0xa0 || Hidden(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

// BeforeCursor prints tail, the end of an output, on a terminal of the size and returns
// the text before the cursor on the cursor's line, without blanks at its ends, with the
// targets of links. It is exact if tail begins with a line.
func BeforeCursor(tail []byte, cols, rows int) string {
	s := NewState(cols, rows)
	s.ShowLinks()
	_, _ = s.Write(bytes.Repeat([]byte{'\n'}, s.rows)) // room for lines that scroll up from the last one
	_, _ = s.Write(tail)
	return strings.TrimSpace(string(s.appendTo(nil, &s.on.lines[s.on.y], s.on.x, nil)))
}
