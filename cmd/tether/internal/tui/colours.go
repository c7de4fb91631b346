package tui

import (
	"bytes"
	"strings"

	"tether/cmd/tether/internal/display"
	"tether/internal/escape"
)

// colourful divides a terminal's output into lines, with its colours and no other sequences. It is for output that is printed line by line,
// such as that of servers and tests; output with cursor movements needs a screen.
type colourful struct {
	lines []string
	line  strings.Builder
	text  []byte // the end of the line, which is not in line yet
	style string // the colour sequences since the last full reset
}

// maxStyle bounds style, in bytes. If a program sets more without a full reset, its colours are reset.
const maxStyle = 256

const plainStyle = "\x1b[0m"

// colouredLines returns data as lines. Each line begins and ends without colours. ok is false for output that needs a screen.
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

// char takes a byte of text. It returns false if the byte needs a screen.
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

// control takes a control sequence. It returns false if the sequence needs a screen.
func (c *colourful) control(final byte, params []byte) bool {
	switch final {
	case 'K': // nothing is behind the cursor, which is at the end of the line
		return true
	case 'h', 'l':
		return !bytes.Contains(params, []byte("47")) && !bytes.Contains(params, []byte("1049")) // the alternate screen
	case 'm':
		if strings.Trim(string(params), "0123456789;:") != "" {
			return true // not SGR: it has private parameters or intermediate bytes
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

// flush appends the text to the line.
func (c *colourful) flush() {
	c.line.WriteString(display.Printable(string(c.text), 0))
	c.text = c.text[:0]
}

// end ends the line. The next line begins with the same colours.
func (c *colourful) end() {
	c.flush()
	if c.style != "" {
		c.line.WriteString(plainStyle)
	}
	c.lines = append(c.lines, c.line.String())
	c.line.Reset()
	c.line.WriteString(c.style)
}
