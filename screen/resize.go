package screen

// Resize changes the size, as xterm.js does it without lines above the screen: the main screen's lines that were broken at the margin are
// broken again, except for the one with the cursor; lines that no longer fit above go to the history.
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

// setRows adds blank rows, or removes rows: those below the cursor first, then those at the top.
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

// clamp keeps the cursors on a screen of that size.
func (g *grid) clamp(cols, rows int) {
	g.x, g.y = min(g.x, cols-1), min(g.y, rows-1)
	g.saved.x = min(g.saved.x, cols-1)
}

// setCols cuts rows that were old columns wide, or lets them grow.
func (g *grid) setCols(old, cols int) {
	for i := range g.lines {
		if l := &g.lines[i]; l.fill != 0 { // new columns have no background
			l.grow(old)
			l.fill = 0
		}
		g.lines[i].cut(cols)
	}
}
