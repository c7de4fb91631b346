package display

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Fit is s in exactly width columns: cut, with an ellipsis, or filled with blanks.
func Fit(s string, width int) string {
	s = ansi.Truncate(s, width, "…")
	return s + strings.Repeat(" ", max(width-ansi.StringWidth(s), 0))
}

// Columns is a table of text. Wide and combining characters count as terminals show them.
type Columns struct {
	Rows  [][]string // the first is the head; all have the same length
	Least []int      // how far each column may be cut; 0 means not at all
}

// MaxCommand is how many characters of a command line a list shows.
const MaxCommand = 60

// columnGap is between two columns.
const columnGap = 2

// Lines are the rows, as far as possible in width columns; 0 is no bound.
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

// widths gives every column the width of its longest cell. If that is too wide, the widest column that may be cut shrinks first.
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
	over -= columnGap // none behind the last
	for ; width > 0 && over > 0; over-- {
		room := make([]int, len(widths)) // by how much each is wider than it must be
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
