package tui

import (
	"bytes"
	"strings"

	"tether/cmd/tether/internal/display"
	"tether/internal/escape"
)

// colourful makes lines of a terminal's output, with its colours and no other sequences. It is for output that continues line by line, as
// that of servers and tests does; cursor movements need a screen.
type colourful struct {
	lines []string
	line  strings.Builder
	text  []byte // of the line, not yet in it
	style string // the sequences since the last that reset all
}

// maxStyle bounds style, in bytes. A program that changes colours more often without a reset loses them.
const maxStyle = 256

const plainStyle = "\x1b[0m"

// colouredLines returns the lines; ok is false for output that needs a screen. Each line begins and ends without a colour.
func colouredLines(data []byte) (lines []string, ok bool) {
	var c colourful
	var s escape.Scanner
	for i, b := range data {
		switch s.Next(b) {
		case escape.Text:
			if b == '\r' && i+1 < len(data) && data[i+1] != '\n' || !c.char(b) {
				return nil, false
			}
		case escape.Control:
			if !c.control(b, s.Params()) {
				return nil, false
			}
		}
	}
	c.end()
	return c.lines, true
}

// char takes a byte of text, and says whether a line can show it.
func (c *colourful) char(b byte) bool {
	switch b {
	case '\n':
		c.end()
	case '\b', '\v', '\f':
		return false
	case '\t':
		c.text = append(c.text, ' ', ' ')
	default:
		if b >= ' ' && b != 0x7f {
			c.text = append(c.text, b)
		}
	}
	return true
}

// control takes a control sequence, and says whether a line can do with or without it.
func (c *colourful) control(final byte, params []byte) bool {
	switch final {
	case 'K': // in a line that grows, nothing is behind the cursor
		return true
	case 'h', 'l':
		return !bytes.Contains(params, []byte("47")) && !bytes.Contains(params, []byte("1049")) // another screen
	case 'm':
		if strings.Trim(string(params), "0123456789;:") != "" {
			return true // something else: its parameters are of another kind
		}
	default:
		return false
	}
	c.flush()
	sgr := "\x1b[" + string(params) + "m"
	switch plain := strings.Trim(string(params), "0") == ""; {
	case plain, len(c.style)+len(sgr) > maxStyle:
		sgr, c.style = plainStyle, ""
	default:
		c.style += sgr
	}
	c.line.WriteString(sgr)
	return true
}

// flush puts the text into the line.
func (c *colourful) flush() {
	c.line.WriteString(display.Printable(string(c.text), 0))
	c.text = c.text[:0]
}

// end ends the line; the next one has its colours again.
func (c *colourful) end() {
	c.flush()
	if c.style != "" {
		c.line.WriteString(plainStyle)
	}
	c.lines = append(c.lines, c.line.String())
	c.line.Reset()
	c.line.WriteString(c.style)
}
