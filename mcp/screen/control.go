package screen

import "strings"

// redraws are the final bytes of the control sequences that move the cursor to another line, erase, insert, delete or scroll. Erasing
// in the cursor's own line counts: who does that is likely to go further next, as test runners do with a status of several lines.
const redraws = "AFHfdu" + "JKXPLM@ST" + "r"

// control does what a control sequence with the final byte c means.
func (s *Screen) control(c byte) {
	defer func() { s.last = 0 }()
	k := &s.parser
	s.redrawn = s.redrawn || strings.IndexByte(redraws, c) >= 0
	switch {
	case k.prefix == '?' && k.inter == 0 && (c == 'h' || c == 'l'):
		for i := range min(k.n, maxParams) {
			s.privateMode(k.params[i], c == 'h')
		}
	case k.inter == '!' && c == 'p': // DECSTR
		s.pen.origin, s.insert, s.wrap = false, false, true
		s.on.top, s.on.bottom = 0, s.rows-1
		s.pen.charset, s.pen.shift = [4]bool{}, 0
		s.saved[s.which()] = pen{}
	case k.prefix != 0 && (k.prefix != '?' || c != 'J' && c != 'K') || k.inter != 0:
	case !s.move(c) && !s.edit(c):
		s.set(c)
	}
}

// move does the sequences that move the cursor.
func (s *Screen) move(c byte) bool {
	n := s.parser.param(0, 1)
	p := &s.pen
	switch c {
	case 'A':
		s.vertical(-n)
	case 'B':
		s.vertical(n)
	case 'e':
		p.row = min(p.row+n, s.rows-1)
		s.column(p.col)
	case 'C', 'a':
		s.column(p.col + n)
	case 'D':
		s.column(min(p.col, s.cols-1) - n)
	case 'E':
		s.vertical(n)
		s.column(0)
	case 'F':
		s.vertical(-n)
		s.column(0)
	case 'G', '`':
		s.column(n - 1)
	case 'H', 'f':
		s.goTo(n-1, s.parser.param(1, 1)-1)
	case 'd':
		s.goTo(n-1, p.col)
	case 'I':
		s.tab(min(n, s.cols))
	case 'Z':
		s.tab(-min(n, s.cols))
	case 's':
		s.save()
	case 'u':
		s.restore()
	default:
		return false
	}
	return true
}

func (s *Screen) column(col int) { s.pen.col = min(max(col, 0), s.cols-1) }

// vertical moves by n rows, but not over a border of the scrolling region.
func (s *Screen) vertical(n int) {
	lo, hi := 0, s.rows-1
	if s.pen.row >= s.on.top {
		lo = s.on.top
	}
	if s.pen.row <= s.on.bottom {
		hi = s.on.bottom
	}
	s.pen.row = min(max(s.pen.row+n, lo), hi)
	s.column(s.pen.col)
}

// goTo moves to a row and column counted from 0.
func (s *Screen) goTo(row, col int) {
	lo, hi := 0, s.rows-1
	if s.pen.origin {
		lo, hi = s.on.top, s.on.bottom
	}
	s.pen.row = min(lo+row, hi)
	s.column(col)
}

// edit does the sequences that erase, insert, delete and scroll.
func (s *Screen) edit(c byte) bool {
	n := s.parser.param(0, 1)
	p, g := &s.pen, s.on
	l := &g.lines[p.row]
	if strings.IndexByte("@PXLM", c) >= 0 {
		s.column(p.col)
	}
	switch c {
	case '@':
		l.insert(p.col, min(n, s.cols-p.col), s.cols)
	case 'P':
		l.delete(p.col, min(n, s.cols-p.col))
	case 'X':
		l.erase(p.col, min(p.col+n, s.cols))
	case 'J':
		s.eraseDisplay(s.parser.param(0, 0))
	case 'K':
		s.eraseLine(s.parser.param(0, 0))
	case 'L', 'M':
		if p.row >= g.top && p.row <= g.bottom {
			if c == 'L' {
				n = -n
			}
			g.rotate(p.row, g.bottom, n)
			s.column(0)
		}
	case 'S':
		s.scrollUp(n)
	case 'T':
		g.rotate(g.top, g.bottom, -n)
	case 'b':
		s.repeat(n)
	default:
		return false
	}
	return true
}

// maxRepeat bounds what eight bytes can make a screen do.
const maxRepeat = 256

// repeat prints the last character again.
func (s *Screen) repeat(n int) {
	if s.last == 0 {
		return
	}
	for range min(n, maxRepeat) {
		s.put(s.last, width(s.last))
	}
}

func (s *Screen) eraseLine(how int) {
	l := &s.on.lines[s.pen.row]
	switch how {
	case 0:
		l.erase(s.pen.col, max(s.cols, len(l.cells))) // what is out of sight, too
		l.wrapped = false
	case 1:
		l.erase(0, s.pen.col+1)
	case 2:
		l.clear()
	}
}

func (s *Screen) eraseDisplay(how int) {
	lines := s.on.lines
	switch how {
	case 0:
		s.eraseLine(0)
		clearAll(lines[s.pen.row+1:])
	case 1:
		s.eraseLine(1)
		clearAll(lines[:s.pen.row])
	case 2:
		s.archiveAll()
		clearAll(lines)
	}
}

func clearAll(lines []line) {
	for i := range lines {
		lines[i].clear()
	}
}

// set does the sequences that change how others work.
func (s *Screen) set(c byte) {
	k := &s.parser
	switch c {
	case 'h', 'l':
		for i := range min(k.n, maxParams) {
			if k.params[i] == 4 {
				s.insert = c == 'h'
			}
		}
	case 'r':
		top, bottom := k.param(0, 1)-1, min(k.param(1, s.rows), s.rows)-1
		if top < bottom {
			s.on.top, s.on.bottom = top, bottom
			s.goTo(0, 0)
		}
	case 'g':
		switch k.param(0, 0) {
		case 0:
			s.tabs[min(s.pen.col, s.cols-1)] = false
		case 3:
			clear(s.tabs)
		}
	}
}

func (s *Screen) privateMode(mode int, on bool) {
	switch mode {
	case 6:
		s.pen.origin = on
		s.goTo(0, 0)
	case 7:
		s.wrap = on
	case 47, 1047:
		s.alternate(on)
	case 1048:
		if on {
			s.save()
		} else {
			s.restore()
		}
	case 1049:
		if on {
			s.save()
		}
		s.alternate(on)
		if !on {
			s.restore()
		}
	}
}

// alternate switches between the two screens. The alternate one is blank at
// first; what was on it leaves no trace.
func (s *Screen) alternate(on bool) {
	if on == (s.on == &s.alt) {
		return
	}
	s.on = &s.main
	if on {
		s.on = &s.alt
		clearAll(s.alt.lines)
		s.alt.top, s.alt.bottom = 0, s.rows-1
	}
}
