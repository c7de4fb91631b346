package acp

import (
	"slices"
	"unicode/utf8"

	"tether/internal/escape"
)

// maxEdited bounds the part of a line that later output can still change, in bytes: progress bars are shorter, and each change may move the
// rest.
const maxEdited = 4 << 10

// plain turns a terminal's output into the text that a person would have read, for a model: without escape sequences and control
// characters, with lines that end in LF. Of a line that was overwritten (a progress bar) it keeps the final text. It does not follow the
// cursor to other lines. It is a pure state machine: pieces of any size, cut between characters, give the same result.
type plain struct {
	line   []byte // the line that is not finished
	col    int    // where the next character goes, in bytes of line
	escape escape.Scanner
}

// write appends the lines that p finishes to dst.
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
			p = p[runeAt(p):] // not for readers, see hidden
		default:
			dst = t.control(dst, p[0])
			p = p[1:]
		}
	}
	return dst
}

// printable is the length of the text at the start of p, at most maxEdited.
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

// hidden recognises characters that no reader sees and that can give a text another meaning for a model than for a person: C1 controls,
// those that turn the direction of text, and tags.
func hidden(r rune) bool {
	switch {
	case r >= 0x80 && r < 0xa0, r == 0x200e, r == 0x200f, r == 0x061c:
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069, r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return false
}

// add appends text to the line, as much as can be kept for changes; a full line goes to dst.
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

// over writes text at the cursor over existing text, up to its end.
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

// runeAt is the length of the first character of p, 0 if it is empty.
func runeAt(p []byte) int {
	_, size := utf8.DecodeRune(p)
	return size
}

// control obeys a control character.
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

// sequence reads on in an escape sequence and returns by how many bytes: one, or none where it turns out to be none.
func (t *plain) sequence(c byte) int {
	switch t.escape.Next(c) {
	case escape.Text:
		return 0
	case escape.Control:
		t.obey(c)
	}
	return 1
}

// obey applies a control sequence within a line: erase in line, and moves of the cursor to the left and right (ECMA-48, 8.3).
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

// number is the sequence's one parameter, at most twice maxEdited, 0 if there is none or it is of another kind.
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

// moveTo puts the cursor behind the first n characters; there are blanks where nothing was written.
func (t *plain) moveTo(n int) {
	t.col = 0
	for n = min(n, maxEdited); n > 0; n-- {
		if t.col == len(t.line) {
			t.line = append(t.line, ' ')
		}
		t.col += runeAt(t.line[t.col:])
	}
}
