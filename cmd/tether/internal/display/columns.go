package display

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Fit returns s in exactly width columns: cut, with an ellipsis, or padded with blanks.
func Fit(s string, width int) string {
	s = ansi.Truncate(s, width, "…")
	return s + strings.Repeat(" ", max(width-ansi.StringWidth(s), 0))
}

// Columns is a table of text. Wide and combining characters count as terminals show them.
type Columns struct {
	Rows  [][]string // the first row is the head; all rows have the same length
	Least []int      // the least width to which each column may be cut; 0 means that it may not be cut
}

// MaxCommand bounds the shown part of a command line in a list, in characters.
const MaxCommand = 60

// columnGap is the number of blanks between two columns.
const columnGap = 2

// Lines returns the rows as lines of at most width columns, as far as Least allows; 0
// means no bound.
func (t *Columns) Lines(width int) []string {
	widths := t.widths(width)
	var out []string
	for _, row := range t.Rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString(strings.Repeat(" ", columnGap))
			}
			line.WriteString(Fit(cell, widths[i]))
		}
		out = append(out, strings.TrimRight(line.String(), " "))
	}
	return out
}

// widths gives each column the width of its widest cell. If the rows are then too wide,
// the widest column that may be cut shrinks first.
func (t *Columns) widths(width int) []int {
	widths := make([]int, len(t.Least))
	for _, row := range t.Rows {
		for i, cell := range row {
			widths[i] = max(widths[i], ansi.StringWidth(cell))
		}
	}
	over := -width
	for _, w := range widths {
		over += w + columnGap
	}
	over -= columnGap // no gap behind the last column
	for ; width > 0 && over > 0; over-- {
		room := make([]int, len(widths)) // the widths of the columns that may shrink, 0 for the others
		for i, w := range widths {
			if t.Least[i] > 0 && w > t.Least[i] {
				room[i] = w
			}
		}
		widest := slices.Max(room)
		if widest == 0 {
			break
		}
		widths[slices.Index(room, widest)]--
	}
	return widths
}
