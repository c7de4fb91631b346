package screen

// line is one row. Cells beyond len are blank with the background fill, so that an erased
// row costs nothing.
type line struct {
	cells   []cell
	fill    uint32
	wrapped bool // the row continues the one above
}

func (l *line) clear(bg uint32) { l.cells, l.fill, l.wrapped = l.cells[:0], bg, false }

func (l *line) at(i int) cell {
	if i < len(l.cells) {
		return l.cells[i]
	}
	return blank(l.fill)
}

func (l *line) width(i int) int {
	if i < len(l.cells) {
		return l.cells[i].width()
	}
	return 1
}

// grow extends the line's cells to at least n with blank ones.
func (l *line) grow(n int) {
	old := len(l.cells)
	if n <= old {
		return
	}
	l.extend(n)
	b := blank(l.fill)
	for i := range l.cells[old:] {
		l.cells[old+i] = b
	}
}

// extend extends the line's cells to exactly n, which is more than it has; the caller
// sets the new ones. It allocates little more than n cells, because other rows reuse the
// memory.
func (l *line) extend(n int) {
	if n > cap(l.cells) {
		l.cells = append(make([]cell, 0, (n+7)&^7), l.cells...)
	}
	l.cells = l.cells[:n]
}

func (l *line) set(i int, c cell) {
	l.grow(i + 1)
	l.cells[i] = c
}

// cut drops cells beyond the width.
func (l *line) cut(cols int) {
	if len(l.cells) > cols {
		l.cells = l.cells[:cols]
	}
}

// filled returns the number of columns up to the last column with a character.
func (l *line) filled() int {
	for n := len(l.cells); n > 0; n-- {
		if c := &l.cells[n-1]; !c.empty() {
			return n - 1 + c.width()
		}
	}
	return 0
}

// erase blanks the columns [from, to) of a row with cols columns, and the other half of a
// wide character at either end.
func (l *line) erase(from, to, cols int, bg uint32) {
	if from > 0 && l.width(from-1) == 2 {
		l.set(from-1, blank(bg))
	}
	if to >= cols {
		if l.fill != bg {
			l.grow(from)
			l.fill = bg
		}
		l.cut(from)
		return
	}
	if l.width(to-1) == 2 {
		l.set(to, blank(bg))
	}
	if to >= len(l.cells) && l.fill == bg {
		l.cut(from)
		return
	}
	l.grow(to)
	for i := from; i < to; i++ {
		l.cells[i] = blank(bg)
	}
}

// eraseOpen is erase for unprotected cells.
func (l *line) eraseOpen(from, to, cols int, bg uint32) {
	if from > 0 && l.width(from-1) == 2 && l.at(from-1).bg&protected == 0 {
		l.set(from-1, blank(bg))
	}
	if to < cols && l.width(to-1) == 2 && l.at(to).bg&protected == 0 {
		l.set(to, blank(bg))
	}
	for i := from; i < min(to, cols); i++ {
		if l.at(i).bg&protected == 0 {
			l.set(i, blank(bg))
		}
	}
}

// insert moves the cells at col and after it to the right by n.
func (l *line) insert(col, n, cols int, bg uint32) {
	if col > 0 && l.width(col-1) == 2 {
		l.set(col-1, blank(bg))
	}
	if n >= cols-col {
		l.eraseEnd(col, bg)
		return
	}
	if l.fill != bg {
		l.grow(cols)
		l.fill = bg
	}
	if kept := len(l.cells); kept > col {
		for range n {
			l.cells = append(l.cells, cell{})
		}
		copy(l.cells[col+n:], l.cells[col:kept])
		for i := col; i < col+n; i++ {
			l.cells[i] = blank(bg)
		}
		l.cut(cols)
	}
	if l.width(cols-1) == 2 {
		l.set(cols-1, blank(bg))
	}
}

// eraseEnd blanks the cells from col on. It leaves the first half of a wide character
// before col.
func (l *line) eraseEnd(col int, bg uint32) {
	if l.fill != bg {
		l.grow(col)
		l.fill = bg
	}
	l.cut(col)
}

// delete removes n columns at col; the cells behind them move to the left.
func (l *line) delete(col, n, cols int, bg uint32) {
	switch {
	case n >= cols-col:
		l.eraseEnd(col, bg)
	default:
		if l.fill != bg {
			l.grow(cols)
			l.fill = bg
		}
		if col < len(l.cells) {
			l.cells = append(l.cells[:col], l.cells[min(col+n, len(l.cells)):]...)
		}
	}
	if col > 0 && l.width(col-1) == 2 {
		l.set(col-1, blank(bg))
	}
	if c := l.at(col); c.width() == 0 && c.empty() {
		l.set(col, blank(bg))
	}
}
