package plain

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"tether/internal/escape"
	"tether/screen"
)

// columns is the width of the row on which lines are drawn.
const columns = 1000

// Renderer turns lines into text. The zero value is ready for use, by one goroutine.
type Renderer struct {
	// Tabs keeps tabs. Otherwise, blanks up to the next column that is a multiple of
	// eight replace a tab.
	Tabs bool
	// Links shows the targets of links, see [screen.Screen.ShowLinks].
	Links bool

	row *screen.Screen
	buf []byte
}

// Text returns the visible text of a line without the blanks at its end. The text is
// valid until the next call.
func (r *Renderer) Text(line []byte) []byte { return bytes.TrimRight(r.Unfinished(line), " ") }

// Unfinished is Text with the blanks before the cursor.
func (r *Renderer) Unfinished(line []byte) []byte {
	line = bytes.TrimRight(line, "\r\n")
	r.buf = r.buf[:0]
	simple := true
	var s escape.Scanner
	for i := 0; i < len(line); {
		kind, n := s.Token(line[i:])
		piece := line[i : i+n]
		simple = simple && !(r.Links && bytes.HasPrefix(piece, []byte("\x1b]8;")))
		switch {
		case kind == escape.Text:
			simple = simple && r.plain(piece)
		case i+n == len(line) && moves(kind, piece[n-1], s.Params()):
			line, n = line[:i], 0 // it must not erase the line
		case kind == escape.Control:
			simple = simple && n == len("\x1b[m")+len(s.Params()) && passes(piece[n-1], s.Params())
		case kind == escape.Function:
			simple = simple && (strings.IndexByte("\\=>", piece[n-1]) >= 0 || len(s.Params()) > 0 && piece[n-1] == 'B')
		}
		i += n
	}
	if !simple {
		r.buf = append(r.buf[:0], r.draw(line)...)
	}
	return r.buf
}

// passes reports whether a control sequence changes no text where the cursor is behind
// it.
func passes(final byte, params []byte) bool {
	switch final {
	case 'm':
		return true
	case 'K', 'J':
		return len(params) == 0 || string(params) == "0"
	case 'h', 'l':
		return string(params) != "4" && string(params) != "20"
	}
	return false
}

// plain appends text to buf. It returns false if the text must be drawn.
func (r *Renderer) plain(text []byte) bool {
	for more := true; more; {
		var piece []byte
		piece, text, more = bytes.Cut(text, []byte{'\t'})
		wide := false
		for _, c := range piece {
			if c < ' ' || c == 0x7f {
				return false
			}
			wide = wide || c >= utf8.RuneSelf
		}
		switch {
		case !wide:
			r.buf = append(r.buf, piece...)
		case !utf8.Valid(piece), bytes.ContainsFunc(piece, func(c rune) bool { return c >= 0x80 && c < 0xa0 }):
			return false
		default:
			r.buf = append(r.buf, screen.Clean(string(piece))...)
		}
		switch {
		case !more:
		case r.Tabs:
			r.buf = append(r.buf, '\t')
		case bytes.ContainsFunc(r.buf, func(c rune) bool { return c >= utf8.RuneSelf }):
			return false // screen knows how wide characters are
		default:
			r.buf = append(r.buf, "        "[len(r.buf)%8:]...)
		}
	}
	return true
}

// draw returns the text of a line as a row of a screen shows it.
func (r *Renderer) draw(line []byte) string {
	if r.row == nil {
		if r.row = screen.New(columns, 3); r.Links {
			r.row.ShowLinks()
		}
	}
	r.row.Reset()
	_, _ = r.row.Write(line)
	text, _ := r.row.History()
	return strings.ReplaceAll(strings.Trim(text, "\n"), "\n", " ")
}

// state returns the text of an unfinished line, the cursor's column, and the incomplete
// sequence at its end.
func (r *Renderer) state(line []byte) (text string, col int, rest []byte) {
	text = r.draw(line)
	col, _ = r.row.Cursor()
	rest = bytes.Clone(line[len(line)-r.row.Pending():])
	if len(rest) > MaxRaw/4 {
		rest = rest[:2] // its introducer
	}
	return text, col, rest
}

// Same reports whether the text of lines is their bytes.
func Same(lines []byte) bool {
	for _, c := range lines {
		if strange[c] {
			return false
		}
	}
	return bytes.Count(lines, []byte("\r")) == bytes.Count(lines, []byte("\r\n"))
}

// strange are controls except for those at the end of a line, and first bytes of
// invisible characters.
var strange = func() (t [256]bool) {
	for c := range ' ' {
		t[c] = c != '\n' && c != '\r'
	}
	t[0x7f], t[0xc2], t[0xe2], t[0xef], t[0xf3] = true, true, true, true, true
	return t
}()
