package acp

import (
	"slices"
	"unicode/utf8"

	"tether/internal/escape"
)

// maxEdited bounds the part of a line that later output can still change, in bytes. Progress bars are shorter. A change may move the rest of
// the line, so its cost grows with the bound.
const maxEdited = 4 << 10

// plain turns a terminal's output into the text that a person would have read, for a model: without escape sequences and control
// characters, and with lines that end in LF. If a line was overwritten, like a progress bar, plain keeps its final text. It does not follow
// cursor movements to other lines. It is a pure state machine: the result does not depend on how the output is cut into pieces, as long as
// no character is cut.
type plain struct {
	line   []byte // the unfinished line
	col    int    // where the next character goes, in bytes of line
	escape escape.Scanner
}

// write reads p and appends the lines that are finished to dst.
func (t *plain) write(dst, p []byte) []byte {
	for len(p) > 0 {
		if !t.escape.Outside() {
			p = p[t.sequence(p[0]):]
			continue
		}
		n := printable(p)
		switch {
		case n > 0 && t.col < len(t.line):
			p = p[t.over(p[:n]):]
		case n > 0:
			var taken int
			dst, taken = t.add(dst, p[:n])
			p = p[taken:]
		case p[0] >= utf8.RuneSelf:
			p = p[runeAt(p):] // a hidden character is left out
		default:
			dst = t.control(dst, p[0])
			p = p[1:]
		}
	}
	return dst
}

// printable returns the length of the printable text at the start of p in bytes. It stops at the first character that ends at maxEdited or
// later.
func printable(p []byte) int {
	i := 0
	for i < len(p) && i < maxEdited {
		switch c := p[i]; {
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(p[i:])
			if hidden(r) {
				return i
			}
			i += size
		case c < ' ' && c != '\t' || c == 0x7f:
			return i
		default:
			i++
		}
	}
	return i
}

// hidden reports whether r is invisible and can make a model read a text differently from a person: a C1 control, a character that changes
// the direction of text, or a tag character.
func hidden(r rune) bool {
	switch {
	case r >= 0x80 && r < 0xa0, r == 0x200e, r == 0x200f, r == 0x061c:
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return false
}

// add appends text to the end of the line, up to maxEdited bytes, and returns how many bytes of p it took. If the line is full, add moves
// the line to dst and takes none.
func (t *plain) add(dst, p []byte) ([]byte, int) {
	n := min(len(p), max(maxEdited-len(t.line), 0))
	for n > 0 && n < len(p) && !utf8.RuneStart(p[n]) {
		n--
	}
	if n == 0 {
		dst = append(dst, t.line...)
		t.line = t.line[:0]
	}
	t.line = append(t.line, p[:n]...)
	t.col = len(t.line)
	return dst, n
}

// over replaces existing text at the cursor by text of p, up to the end of the line. It returns how many bytes of p it took.
func (t *plain) over(p []byte) (n int) {
	end := t.col
	for n < len(p) && end < len(t.line) {
		n += runeAt(p[n:])
		end += runeAt(t.line[end:])
	}
	t.line = slices.Replace(t.line, t.col, end, p[:n]...)
	t.col += n
	return n
}

// runeAt returns the length of the first character of p in bytes, or 0 if p is empty.
func runeAt(p []byte) int {
	_, size := utf8.DecodeRune(p)
	return size
}

// control applies a control character.
func (t *plain) control(dst []byte, c byte) []byte {
	switch c {
	case '\n':
		dst = append(append(dst, t.line...), '\n')
		t.line, t.col = t.line[:0], 0
	case '\r':
		t.col = 0
	case '\b':
		_, size := utf8.DecodeLastRune(t.line[:t.col])
		t.col -= size
	case 0x1b:
		t.escape.Next(c)
	}
	return dst
}

// sequence reads the next byte of an escape sequence. It returns 1, or 0 if c is not part of the sequence but text.
func (t *plain) sequence(c byte) int {
	switch t.escape.Next(c) {
	case escape.Text:
		return 0
	case escape.Control:
		t.obey(c)
	}
	return 1
}

// obey applies the control sequences that work within a line: erase in line, and cursor movements to the left and right (ECMA-48, 8.3).
func (t *plain) obey(final byte) {
	switch n := t.number(); final {
	case 'K':
		switch n {
		case 0:
			t.line = t.line[:t.col]
		case 2:
			t.line, t.col = t.line[:0], 0
		}
	case 'G':
		t.moveTo(max(n, 1) - 1)
	case 'C':
		t.moveTo(utf8.RuneCount(t.line[:t.col]) + max(n, 1))
	case 'D':
		t.moveTo(max(utf8.RuneCount(t.line[:t.col])-max(n, 1), 0))
	}
}

// number returns the parameter of the control sequence, at most twice maxEdited. It returns 0 if there is none, or anything but one number.
func (t *plain) number() int {
	n := 0
	for _, c := range t.escape.Params() {
		if c < '0' || c > '9' {
			return 0
		}
		n = min(10*n+int(c-'0'), 2*maxEdited)
	}
	return n
}

// moveTo puts the cursor after the first n characters of the line, and extends the line with blanks if it is shorter.
func (t *plain) moveTo(n int) {
	t.col = 0
	for n = min(n, maxEdited); n > 0; n-- {
		if t.col == len(t.line) {
			t.line = append(t.line, ' ')
		}
		t.col += runeAt(t.line[t.col:])
	}
}
