package screen

import "unicode/utf8"

// cell is one place of the grid. r is 0 where nothing was written and tail in
// the second half of a wide character.
type cell struct {
	r    rune
	more string // what combines with r
}

const tail rune = -1

// maxCombining bounds what combines with one character, in bytes.
const maxCombining = 16

// line is one row. Cells beyond len are blank, so that an erased row costs
// nothing.
type line struct {
	cells   []cell
	wrapped bool // the text goes on in the next row
}

func (l *line) clear() { l.cells, l.wrapped = l.cells[:0], false }

// appendTo appends the text; trim leaves out the blanks at the end.
func (l *line) appendTo(b []byte, trim bool) []byte { return l.appendUpTo(b, len(l.cells), trim) }

// appendUpTo is appendTo for the first n columns.
func (l *line) appendUpTo(b []byte, n int, trim bool) []byte {
	end := len(b)
	for i := range min(n, len(l.cells)) {
		c := &l.cells[i]
		switch {
		case c.r > ' ' && c.r < utf8.RuneSelf && c.more == "":
			b = append(b, byte(c.r))
			end = len(b)
		case c.r == tail:
		case c.r == 0 || c.r == ' ':
			b = append(b, ' ')
		default:
			b = utf8.AppendRune(b, c.r)
			b = append(b, c.more...)
			end = len(b)
		}
	}
	if trim {
		return b[:end]
	}
	return b
}

// width is the number of columns up to the last that is not blank.
func (l *line) width() int {
	n := len(l.cells)
	for n > 0 && (l.cells[n-1].r == 0 || l.cells[n-1].r == ' ') {
		n--
	}
	return n
}

// blank reports whether nothing can be seen in the line.
func (l *line) blank() bool { return l.width() == 0 }

// put writes r at col, over half a wide character if need be.
func (l *line) put(col int, r rune) {
	for len(l.cells) <= col {
		l.cells = append(l.cells, cell{})
	}
	l.split(col)
	l.split(col + 1)
	l.cells[col] = cell{r: r}
}

// putRun writes ASCII at col.
func (l *line) putRun(col int, p []byte) {
	l.split(col)
	l.split(col + len(p))
	for len(l.cells) < col+len(p) {
		l.cells = append(l.cells, cell{})
	}
	for i, c := range p {
		l.cells[col+i] = cell{r: rune(c)}
	}
}

// split blanks a wide character that the border before col would cut.
func (l *line) split(col int) {
	if col > 0 && col < len(l.cells) && l.cells[col].r == tail {
		l.cells[col-1], l.cells[col] = cell{}, cell{}
	}
}

// erase blanks the columns [from, to).
func (l *line) erase(from, to int) {
	l.split(from)
	l.split(to)
	if to >= len(l.cells) {
		l.cells = l.cells[:min(from, len(l.cells))]
		return
	}
	clear(l.cells[from:to])
}

// insert moves what stands at col and after it to the right by n; cols is the
// width.
func (l *line) insert(col, n, cols int) {
	if col >= len(l.cells) {
		return
	}
	l.split(col)
	kept := min(len(l.cells), cols-n)
	l.split(kept)
	for range n {
		l.cells = append(l.cells, cell{})
	}
	if kept > col {
		copy(l.cells[col+n:], l.cells[col:kept])
	}
	clear(l.cells[col:min(col+n, len(l.cells))])
	l.cut(cols)
}

// delete takes n columns out at col.
func (l *line) delete(col, n int) {
	if col >= len(l.cells) {
		return
	}
	l.split(col)
	l.split(col + n)
	l.cells = append(l.cells[:col], l.cells[min(col+n, len(l.cells)):]...)
}

// cut drops what lies beyond the width.
func (l *line) cut(cols int) {
	if len(l.cells) > cols {
		l.split(cols)
		l.cells = l.cells[:cols]
	}
}

// grid is one of the two screens. top and bottom are the rows of the scrolling
// region.
type grid struct {
	lines       []line
	top, bottom int
}

func newGrid(rows int) grid { return grid{lines: make([]line, rows), bottom: rows - 1} }

// filled is the number of rows down to the last that is not blank.
func (g *grid) filled() int {
	n := len(g.lines)
	for n > 0 && g.lines[n-1].blank() {
		n--
	}
	return n
}

// resize changes the number of rows. What stands beyond a smaller width is
// not seen any more, but is still a part of its line.
func (g *grid) resize(rows int) {
	for len(g.lines) < rows {
		g.lines = append(g.lines, line{})
	}
	g.lines = g.lines[:rows]
	g.top, g.bottom = 0, rows-1
}

// rotate moves the rows [from, to] up by n, or down if n is negative; those
// that come in are blank.
func (g *grid) rotate(from, to, n int) {
	region := g.lines[from : to+1]
	up := n > 0
	if !up {
		n = -n
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
		region[i].clear()
	}
}
