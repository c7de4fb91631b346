package main

import (
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// fit is s in exactly width columns: cut, with an ellipsis, or filled with blanks.
func fit(s string, width int) string {
	s = ansi.Truncate(s, width, "…")
	return s + strings.Repeat(" ", max(width-ansi.StringWidth(s), 0))
}

// columns is a table of text. Wide and combining characters count as terminals show them.
type columns struct {
	rows  [][]string // the first is the head; all have the same length
	least []int      // how far each column may be cut; 0 means not at all
}

// columnGap is between two columns.
const columnGap = 2

// lines are the rows, as far as possible in width columns; 0 is no bound.
func (t *columns) lines(width int) []string {
	widths := t.widths(width)
	var out []string
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			if i > 0 {
				line.WriteString(strings.Repeat(" ", columnGap))
			}
			line.WriteString(fit(cell, widths[i]))
		}
		out = append(out, strings.TrimRight(line.String(), " "))
	}
	return out
}

// widths gives every column the width of its longest cell. If that is too wide, the widest column that may be cut shrinks first.
func (t *columns) widths(width int) []int {
	widths := make([]int, len(t.least))
	for _, row := range t.rows {
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
			if t.least[i] > 0 && w > t.least[i] {
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
