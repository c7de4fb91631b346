package screen

// print puts a character where the cursor is.
func (s *Screen) print(r rune) {
	switch {
	case hidden(r):
		return
	case combines(r):
		s.combine(r)
		return
	}
	if s.pen.charset[s.pen.shift] && r >= 0x60 && int(r-0x60) < len(graphics) {
		r = graphics[r-0x60]
	}
	s.put(r, width(r))
}

// put writes a character of w cells and moves the cursor.
func (s *Screen) put(r rune, w int) {
	w = min(w, s.cols)
	if s.pen.col+w > s.cols {
		if s.wrap {
			s.on.lines[s.pen.row].erase(s.pen.col, s.cols) // one column, before a wide character
			s.on.lines[s.pen.row].wrapped = true
			s.pen.col = 0
			s.lineFeed()
		} else if s.pen.col = s.cols - 1; w == 2 {
			return // there is no room for it
		}
	}
	l := &s.on.lines[s.pen.row]
	if s.insert {
		l.insert(s.pen.col, w, s.cols)
	}
	l.put(s.pen.col, r)
	if w == 2 {
		l.put(s.pen.col+1, ' ')
		l.cells[s.pen.col+1].r = tail
	}
	s.last = r
	s.pen.col += w
}

// combine adds r to the character before the cursor.
func (s *Screen) combine(r rune) {
	l := &s.on.lines[s.pen.row]
	i := s.pen.col - 1
	if i > 0 && i < len(l.cells) && l.cells[i].r == tail {
		i--
	}
	if i < 0 || i >= len(l.cells) || l.cells[i].r == 0 {
		return
	}
	if c := &l.cells[i]; len(c.more)+len(string(r)) <= maxCombining {
		c.more += string(r)
	}
}

// c0 does what a control character means.
func (s *Screen) c0(c byte) {
	s.last = 0
	switch c {
	case '\b':
		s.column(min(s.pen.col, s.cols-1) - 1)
	case '\t':
		s.tab(1)
	case '\n', '\v', '\f':
		s.lineFeed()
	case '\r':
		s.pen.col = 0
	case 0x0e:
		s.pen.shift = 1
	case 0x0f:
		s.pen.shift = 0
	}
}

// tab moves to the n-th tab stop to the right, or to the left if n is negative.
func (s *Screen) tab(n int) {
	step := 1
	if s.pen.col >= s.cols {
		return
	}
	if n < 0 {
		step, n = -1, -n
	}
	for ; n > 0; n-- {
		for {
			s.pen.col += step
			if s.pen.col <= 0 || s.pen.col >= s.cols-1 {
				s.pen.col = min(max(s.pen.col, 0), s.cols-1)
				return
			}
			if s.tabs[s.pen.col] {
				break
			}
		}
	}
}

// lineFeed moves down, or the region up.
func (s *Screen) lineFeed() {
	s.column(s.pen.col)
	switch {
	case s.pen.row == s.on.bottom:
		s.scrollUp(1)
	case s.pen.row < s.rows-1:
		s.pen.row++
	}
}

func (s *Screen) reverseLineFeed() {
	s.column(s.pen.col)
	switch {
	case s.pen.row == s.on.top:
		s.on.rotate(s.on.top, s.on.bottom, -1)
	case s.pen.row > 0:
		s.pen.row--
	}
}

// scrollUp moves the region up; what leaves the top of the main screen goes to
// the history.
func (s *Screen) scrollUp(n int) {
	n = min(n, s.on.bottom-s.on.top+1)
	if s.on == &s.main && s.on.top == 0 {
		for i := range n {
			s.archive(&s.on.lines[i])
		}
	}
	s.on.rotate(s.on.top, s.on.bottom, n)
}

// escapeFinal ends a sequence of ESC, perhaps intermediates, and c.
func (s *Screen) escapeFinal(c byte) {
	k := &s.parser
	more := k.state == escapeMore
	k.state = ground
	if more {
		s.last = 0
		s.choose(k.inter, c)
		return
	}
	if c != '[' {
		s.last = 0
	}
	switch c {
	case '[':
		k.begin(control)
	case ']':
		k.begin(osc)
	case 'P', 'X', '^', '_':
		k.begin(str)
	case '7':
		s.save()
	case '8':
		s.redrawn = true
		s.restore()
	case 'D':
		s.lineFeed()
	case 'E':
		s.pen.col = 0
		s.lineFeed()
	case 'M':
		s.redrawn = true
		s.reverseLineFeed()
	case 'H':
		s.tabs[min(s.pen.col, s.cols-1)] = true
	case 'n':
		s.pen.shift = 2
	case 'o':
		s.pen.shift = 3
	case 'c':
		s.archiveAll()
		s.reset()
	}
}

// choose selects a set of characters.
func (s *Screen) choose(inter, c byte) {
	switch {
	case inter >= '(' && inter < '('+4:
		s.pen.charset[inter-'('] = c == '0'
	case inter == '%': // UTF-8, or another encoding, which is not supported
		s.pen.charset[0], s.pen.shift = false, 0
	}
}

func (s *Screen) which() int {
	if s.on == &s.alt {
		return 1
	}
	return 0
}

func (s *Screen) save() { s.saved[s.which()] = s.pen }

func (s *Screen) restore() {
	s.pen = s.saved[s.which()]
	s.pen.col, s.pen.row = min(s.pen.col, s.cols-1), min(s.pen.row, s.rows-1)
}
