package screen

// restrict brings the cursor into the screen, up to a column, and in origin mode into the
// scrolling region.
func (s *Screen) restrict(col int) {
	g := s.on
	g.x = min(max(g.x, 0), col)
	if s.modes.origin {
		g.y = min(max(g.y, g.top), g.bottom)
	} else {
		g.y = min(max(g.y, 0), s.rows-1)
	}
}

// goTo moves the cursor to a row and column counted from 0; in origin mode rows count
// from the scrolling region.
func (s *Screen) goTo(row, col int) {
	if s.modes.origin {
		row += s.on.top
	}
	s.on.x, s.on.y = col, row
	s.on.placed()
	s.restrict(s.cols - 1)
}

// move moves the cursor by columns and rows. In origin mode xterm.js counts the row from
// the region once more, see xterm_test.go.
func (s *Screen) move(cols, rows int) {
	s.restrict(s.cols - 1)
	s.on.x, s.on.y = s.on.x+cols, s.on.y+rows
	s.restrict(s.cols - 1)
}

func (s *Screen) up(n int) {
	if d := s.on.y - s.on.top; d >= 0 {
		n = min(n, d)
	}
	s.move(0, -n)
}

func (s *Screen) down(n int) {
	if d := s.on.bottom - s.on.y; d >= 0 {
		n = min(n, d)
	}
	s.move(0, n)
}

// tab moves the cursor to the n-th tab stop to the right, or to the left if n is
// negative.
func (s *Screen) tab(n int) {
	g := s.on
	if g.x >= s.cols || !s.affordLines(s.cols+max(n, -n), 0) {
		return
	}
	for ; n > 0; n-- {
		g.x = g.nextTab(g.x, s.cols)
	}
	for ; n < 0; n++ {
		g.x = g.lastTab(g.x)
	}
}

func (s *Screen) backspace() {
	g := s.on
	if !s.modes.reverseWrap {
		s.restrict(s.cols - 1)
		g.x = max(g.x-1, 0)
		return
	}
	s.restrict(s.cols)
	if g.x > 0 {
		g.x--
	} else if l := &g.lines[g.y]; g.y > g.top && g.y <= g.bottom && l.wrapped {
		l.wrapped = false
		g.y--
		g.x = s.cols - 1
		if c := g.lines[g.y].at(g.x); c.width() == 1 && c.empty() {
			g.x--
		}
	}
	s.restrict(s.cols - 1)
}

// lineFeed moves the cursor down or, in the last row of the scrolling region, scrolls the
// region up.
func (s *Screen) lineFeed() {
	g := s.on
	if s.modes.newline {
		g.x = 0
	}
	g.y++
	switch {
	case g.y == g.bottom+1:
		g.y--
		s.scrollUp(false)
	case g.y >= s.rows:
		g.y = s.rows - 1
	default:
		g.lines[g.y].wrapped = false
	}
	if g.x >= s.cols {
		g.x--
	}
}

// index is lineFeed for ESC D and ESC E.
func (s *Screen) index() {
	s.restrict(s.cols - 1)
	g := s.on
	if g.y == g.bottom {
		s.scrollUp(false)
	} else {
		g.y = min(g.y+1, s.rows-1)
	}
	s.restrict(s.cols - 1)
}

func (s *Screen) reverseIndex() {
	s.restrict(s.cols - 1)
	g := s.on
	if g.y == g.top {
		if !s.affordLines(g.bottom-g.top, 1) {
			return
		}
		g.rotate(g.top, g.bottom, -1, s.erased())
		return
	}
	g.y--
	s.restrict(s.cols - 1)
}

// scrollUp moves the region up by one row; a row that leaves the top of the main screen
// goes to the history. wrapped: the new row continues the one above.
func (s *Screen) scrollUp(wrapped bool) {
	g := s.on
	if !s.affordLines(g.bottom-g.top, 1) {
		return
	}
	if s.text.kept && g == &s.main && g.top == 0 {
		s.archive(g, 1, wrapped)
	}
	if g.top == 0 && g.bottom == s.rows-1 {
		g.scrolled()
	}
	g.rotate(g.top, g.bottom, 1, s.erased())
	g.lines[g.bottom].wrapped = wrapped
}

// erased returns the background that cells get when they are erased now.
func (s *Screen) erased() uint32 { return s.pen.bg & colourMask }
