package screen

// Resize changes the size; sizes are brought into 1 to 1000. It does what xterm.js does
// without scrollback: lines of the main screen that were broken at the margin are broken
// anew, except for the line with the cursor. Lines that no longer fit at the top go to
// the history.
func (s *Screen) Resize(cols, rows int) {
	cols, rows = side(cols), side(rows)
	if cols == s.cols && rows == s.rows {
		return
	}
	if s.on == &s.alt {
		s.alt.doubt.resized(rows)
		s.alt.setRows(s, rows)
		s.alt.setCols(s.cols, cols)
	} else {
		s.alt.top, s.alt.bottom = 0, rows-1
	}
	s.main.doubt.resized(rows)
	s.main.setRows(s, rows)
	s.main.clamp(cols, rows)
	s.main.setCols(s.cols, max(s.cols, cols))
	if cols != s.cols {
		s.reflow(cols, rows)
	}
	s.main.setCols(cols, cols)
	s.alt.clamp(cols, rows)
	s.cols, s.rows = cols, rows
	s.main.moreTabs(cols)
	s.alt.moreTabs(cols)
}

// setRows adds blank rows, or removes rows: those below the cursor first, then those at
// the top.
func (g *grid) setRows(s *Screen, rows int) {
	for len(g.lines) < rows {
		g.lines = append(g.lines, line{})
	}
	g.lines = g.lines[:max(rows, min(len(g.lines), g.y+1))]
	if over := len(g.lines) - rows; over > 0 {
		if g == &s.main {
			s.archive(g, over, false)
		}
		g.drop(over)
	}
	g.top, g.bottom = 0, rows-1
}

// drop removes n rows at the top.
func (g *grid) drop(n int) {
	g.lines = append(g.lines[:0], g.lines[n:]...)
	g.saved.y = max(g.saved.y-n, 0)
}

// clamp moves the cursor onto a screen of the size. Of the saved cursor it bounds only
// the column.
func (g *grid) clamp(cols, rows int) {
	g.x, g.y = min(g.x, cols-1), min(g.y, rows-1)
	g.saved.x = min(g.saved.x, cols-1)
}

// setCols changes the width of the rows from old to cols columns.
func (g *grid) setCols(old, cols int) {
	for i := range g.lines {
		if l := &g.lines[i]; l.fill != 0 { // new columns have no background
			l.grow(old)
			l.fill = 0
		}
		g.lines[i].cut(cols)
	}
}
