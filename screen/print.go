package screen

import "unicode/utf8"

// print writes a character at the cursor, or combines it with the character before.
func (s *Screen) print(r rune) {
	if s.blind {
		return
	}
	if s.sets.used != 0 && r < 0x7f {
		r = s.sets.translate(r)
	}
	w := width(r)
	if w == 0 {
		s.combine(r)
		return
	}
	s.put(uint32(r)|uint32(w)<<widthShift, w)
}

// put writes the cell content ch, w cells wide, at the cursor and moves the cursor.
func (s *Screen) put(ch uint32, w int) {
	g := s.on
	s.last = ch
	if g.x > 0 && g.lines[g.y].width(g.x-1) == 2 {
		s.draw(g.x-1, null)
	}
	if g.x+w > s.cols {
		if !s.modes.wrap {
			if g.x = s.cols - 1; w == 2 {
				s.mend()
				return // the character has no room
			}
		} else if w > s.cols {
			return
		} else {
			s.wrap()
		}
	}
	l := &g.lines[g.y]
	if s.modes.insert && s.afford(s.cols-g.x) {
		l.insert(g.x, w, s.cols, s.erased())
		if l.width(s.cols-1) == 2 {
			s.draw(s.cols-1, null)
		}
	}
	s.draw(g.x, ch)
	g.x++
	if w == 2 {
		s.draw(g.x, 0)
		g.x++
	}
	s.mend()
}

// draw sets the content of a cell in the cursor's row with the pen.
func (s *Screen) draw(col int, ch uint32) {
	c := s.ink
	c.ch = ch
	s.on.lines[s.on.y].set(col, c)
}

// mend blanks the second half of a wide character whose first half was overwritten.
func (s *Screen) mend() {
	g := s.on
	if l := &g.lines[g.y]; g.x < s.cols && g.x < len(l.cells) && l.cells[g.x].ch == 0 {
		s.draw(g.x, null)
	}
}

// wrap moves the cursor to the beginning of the next row, which continues this one.
func (s *Screen) wrap() {
	g := s.on
	for x := g.x; x < s.cols; x++ {
		s.draw(x, null) // the one column that a wide character does not fit into
	}
	g.x = 0
	g.y++
	switch {
	case g.y == g.bottom+1:
		g.y--
		s.scrollUp(true)
	default:
		g.y = min(g.y, s.rows-1)
		g.lines[g.y].wrapped = true
	}
}

// run prints ASCII.
func (s *Screen) run(p []byte) {
	g := s.on
	for len(p) > 0 {
		if g.x >= s.cols || s.modes.insert {
			s.put(uint32(p[0])|null, 1)
			p = p[1:]
			continue
		}
		l := &g.lines[g.y]
		if g.x > 0 && l.width(g.x-1) == 2 {
			s.draw(g.x-1, null)
		}
		n := min(len(p), s.cols-g.x)
		if end := g.x + n; end > len(l.cells) {
			l.grow(g.x)
			l.extend(end)
		}
		ink := s.ink
		cells := l.cells[g.x:][:n]
		for i, c := range p[:n] {
			ink.ch = uint32(c) | null
			cells[i] = ink
		}
		g.x += n
		s.last = uint32(p[n-1]) | null
		p = p[n:]
		s.mend()
	}
}

// combine adds r to the character before the cursor.
func (s *Screen) combine(r rune) {
	g := s.on
	if s.last == 0 || g.x == 0 {
		return
	}
	l := &g.lines[g.y]
	i := g.x - 1
	if l.width(i) == 0 && i > 0 {
		i--
	}
	c := l.at(i)
	if c.empty() {
		return
	}
	text := s.string(c.ch)
	_, size := utf8.DecodeRuneInString(text)
	if len(text)-size+utf8.RuneLen(r) > maxCombining {
		return
	}
	s.tidy()
	if n, ok := s.tables.cluster(text + string(r)); ok {
		c = l.at(i) // tidy may have renumbered it
		c.ch = c.ch&^content | clustered | n
		l.set(i, c)
		s.last = c.ch
	}
}

// string returns the characters of a cell.
func (s *Screen) string(ch uint32) string {
	switch {
	case ch&clustered != 0:
		return s.tables.clusters[ch&codeMask]
	case ch&codeMask != 0:
		return string(rune(ch & codeMask))
	}
	return ""
}

// repeat prints the last character, with its combining characters, n times. maxSide
// bounds n to about the work that the sequence's bytes earn.
func (s *Screen) repeat(n int) {
	if n = min(n, maxSide); s.last != 0 && s.afford(4*n) {
		ch := s.last
		for range n {
			s.put(ch, max(int(ch>>widthShift), 1))
		}
	}
}
