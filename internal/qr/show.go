package qr

import "strings"

// quiet is the light border that Text draws, in modules. The standard wants four; readers do with two, and every line counts.
const quiet = 2

// Cells is how much of a terminal Text takes.
func (c *Code) Cells() (cols, rows int) {
	n := c.Size + 2*quiet
	return n, (n + 1) / 2
}

// Text draws the code with half blocks, a line for two rows of modules. With colours it is black on white in every terminal; without, light
// modules have the colour of text, which suits light text on a dark screen.
func (c *Code) Text(colours bool) string {
	var out strings.Builder
	cols, rows := c.Cells()
	for row := range rows {
		if colours {
			out.WriteString("\x1b[38;5;16;48;5;231m")
		}
		for x := range cols {
			upper, lower := c.Dark(x-quiet, 2*row-quiet), c.Dark(x-quiet, 2*row+1-quiet)
			out.WriteString(block(upper == colours, lower == colours))
		}
		if colours {
			out.WriteString("\x1b[m")
		}
		out.WriteString("\n")
	}
	return out.String()
}

// block is a character of which the upper and the lower half have the colour of text.
func block(upper, lower bool) string {
	switch {
	case upper && lower:
		return "█"
	case upper:
		return "▀"
	case lower:
		return "▄"
	}
	return " "
}
