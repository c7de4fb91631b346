package screen

// reflow breaks lines of the main screen anew that were broken at the margin. The group
// of rows with the cursor stays unchanged, because the program redraws it.
func (s *Screen) reflow(cols, rows int) {
	if cols > s.cols {
		s.reflowWider(cols, rows)
	} else {
		s.reflowNarrower(cols, rows)
	}
}

// group returns the number of rows from y on that form one line.
func (g *grid) group(y int) int {
	n := 1
	for y+n < len(g.lines) && g.lines[y+n].wrapped {
		n++
	}
	return n
}

// length returns the number of columns of row i that belong to its line. last says that
// the line ends in this row. The blank column before a wide character that did not fit
// does not belong to the line.
func (g *grid) length(i int, last bool, cols int) int {
	l := &g.lines[i]
	if last {
		return l.filled()
	}
	if c := l.at(cols - 1); c.empty() && c.width() == 1 && g.lines[i+1].width(0) == 2 {
		return cols - 1
	}
	return cols
}

// joined returns the cells of a line of n rows.
func (g *grid) joined(y, n, cols int) []cell {
	var all []cell
	for i := y; i < y+n; i++ {
		for x := range g.length(i, i == y+n-1, cols) {
			all = append(all, g.lines[i].at(x))
		}
	}
	return all
}

// broken returns the cells divided into rows of cols columns.
func broken(all []cell, cols int) (lines []line) {
	for len(all) > 0 {
		n := min(cols, len(all))
		if n == cols && n < len(all) && all[n-1].width() == 2 {
			n--
		}
		n = max(n, 1)
		lines = append(lines, line{cells: append([]cell(nil), all[:n]...), wrapped: len(lines) > 0})
		all = all[n:]
	}
	return lines
}

// reflowWider joins rows, and adds blank rows at the bottom.
func (s *Screen) reflowWider(cols, rows int) {
	g := &s.main
	var all []line
	for y, n := 0, 0; y < len(g.lines); y += n {
		n = g.group(y)
		if n == 1 || g.y >= y && g.y < y+n {
			all = append(all, g.lines[y:y+n]...)
			continue
		}
		lines := broken(g.joined(y, n, s.cols), cols)
		if len(lines) == 0 {
			lines = []line{{}}
		}
		lines[0].wrapped = g.lines[y].wrapped
		all = append(all, lines...)
	}
	removed := max(len(g.lines)-len(all), 0)
	g.lines = all
	for len(g.lines) < rows {
		g.lines = append(g.lines, line{})
	}
	g.y, g.saved.y = max(g.y-removed, 0), max(g.saved.y-removed, 0) // as in xterm.js, even for rows below the cursor
}

// reflowNarrower breaks rows that are too long. Of rows that then do not fit, it drops
// those below the cursor first, then those at the top.
func (s *Screen) reflowNarrower(cols, rows int) {
	g := &s.main
	for y := len(g.lines) - 1; y >= 0; y-- {
		n := 1
		for y > 0 && g.lines[y].wrapped {
			y--
			n++
		}
		if n == 1 && g.lines[y].filled() <= cols || g.y >= y && g.y < y+n {
			continue
		}
		first := g.lines[y].wrapped
		lines := broken(g.joined(y, n, s.cols), cols)
		for len(lines) < n {
			lines = append(lines, line{wrapped: true})
		}
		lines[0].wrapped = first
		added := len(lines) - n
		g.lines = append(g.lines[:y], append(lines, g.lines[y+n:]...)...)
		below := y > g.y
		if !below {
			g.y += added
		}
		for range added {
			if len(g.lines) > rows && g.y < len(g.lines)-1 {
				g.lines = g.lines[:len(g.lines)-1]
			}
		}
		g.saved.y = min(g.saved.y+added, rows-1)
	}
	if over := len(g.lines) - rows; over > 0 {
		s.archive(g, over, false)
		g.drop(over)
		g.y -= over
	}
	g.y = min(max(g.y, 0), rows-1)
}
