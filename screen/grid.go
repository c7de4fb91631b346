package screen

import "slices"

// grid is one of the two screens.
type grid struct {
	lines       []line // the alternate screen has none while the main screen is shown
	top, bottom int    // rows of the scrolling region
	x, y        int    // the cursor; x is the width when the last column was written: the next character goes below
	saved       saved
	tabs        []bool
	doubt       doubt
}

// saved is a cursor that was saved. It has its own character set, but not the choice of
// sets.
type saved struct {
	x, y    int
	fg, bg  uint32
	charset byte
}

func (g *grid) begin(cols, rows int) {
	g.x, g.y, g.top, g.bottom, g.lines = 0, 0, 0, rows-1, nil
	g.tabs, g.doubt = slices.Grow(g.tabs[:0], cols)[:cols], doubt{}
	clear(g.tabs)
	g.setTabs(0, cols)
}

// setTabs sets the tab stops from a column on.
func (g *grid) setTabs(from, cols int) {
	for len(g.tabs) < cols {
		g.tabs = append(g.tabs, false)
	}
	for i := from; i < cols; i += 8 {
		g.tabs[i] = true
	}
}

// moreTabs sets the tab stops of a terminal that became cols wide.
func (g *grid) moreTabs(cols int) {
	last := cols
	for last > 0 && !(last < len(g.tabs) && g.tabs[last]) {
		last--
	}
	g.setTabs(last, cols)
}

func (g *grid) nextTab(x, cols int) int {
	for x++; x < cols && !g.tabs[x]; x++ {
	}
	return min(x, cols-1)
}

func (g *grid) lastTab(x int) int {
	for x--; x > 0 && !g.tabs[x]; x-- {
	}
	return max(x, 0)
}

// filled returns the number of rows from the top to the last row that is not blank.
func (g *grid) filled() int {
	n := len(g.lines)
	for n > 0 && g.lines[n-1].blank() {
		n--
	}
	return n
}

// rotate moves the rows [from, to] up by n, or down if n is negative; the rows that come
// in are blank.
func (g *grid) rotate(from, to, n int, bg uint32) {
	region := g.lines[from : to+1]
	g.doubt.blank = false
	if n == 1 { // by far the most frequent case
		first := region[0]
		copy(region, region[1:])
		region[len(region)-1] = first
		region[len(region)-1].clear(bg)
		return
	}
	up := n > 0
	if !up {
		n = -n
		g.doubt.sunk(from, to)
	}
	n = min(n, len(region))
	gone := make([]line, n) // their memory is used again
	if up {
		copy(gone, region[:n])
		copy(region, region[n:])
		copy(region[len(region)-n:], gone)
		region = region[len(region)-n:]
	} else {
		copy(gone, region[len(region)-n:])
		copy(region[n:], region)
		copy(region, gone)
		region = region[:n]
	}
	for i := range region {
		region[i].clear(bg)
	}
}
