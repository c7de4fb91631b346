package qr

import "strings"

// quiet is the width of the light border that Text draws, in modules. The standard
// requires four. Readers need only two, and terminals have few lines.
const quiet = 2

// Cells returns the columns and rows that Text takes in a terminal.
func (c *Code) Cells() (cols, rows int) {
	n := c.Size + 2*quiet
	return n, (n + 1) / 2
}

// Text draws the code with half blocks: each line shows two rows of modules. With
// colours, the code is black on white in every terminal. Without, light modules have the
// colour of text, which is right only for light text on a dark background.
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

// block returns the character whose upper half, lower half, both or neither have the
// colour of text.
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
