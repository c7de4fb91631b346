package plain

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"

	"tether/internal/escape"
	"tether/screen"
)

// Bulk turns much output at once into text, for searches. It shows the same as Lines and
// a Renderer that keeps tabs, but draws only lines that need it. The zero value is ready
// for use, by one goroutine.
type Bulk struct {
	// Drawn are the lines that Text had to draw the last time, which takes long. They are
	// valid until the next call.
	Drawn []Drawn

	render Renderer
	lines  Lines
	text   []byte
	added  []int
}

// Drawn is a line of an output that ends with a line feed, and its text.
type Drawn struct {
	Start, End int // in the output
	Text       []byte
}

// Text returns the text of output that begins with a line: a line of text for each line,
// with the blanks at its end and "\n" or "\r\n". A line that the output has not ended has
// none. The text is valid until the next call, and is the output itself if that is
// nothing but text. Lines that are among known, in their order, need not be drawn.
func (b *Bulk) Text(output []byte, known []Drawn) []byte {
	b.added, b.Drawn = b.added[:0], b.Drawn[:0]
	if odd(output) == len(output) {
		return output
	}
	b.text = b.text[:0]
	for pos := 0; pos < len(output); {
		i := pos + odd(output[pos:])
		b.text = append(b.text, output[pos:i]...)
		if i == len(output) {
			break
		}
		if n := colours(output[i:]); n > 0 {
			pos = i + n
			continue
		}
		start, end := bytes.LastIndexByte(output[:i], '\n')+1, len(output)
		if n := bytes.IndexByte(output[i:], '\n'); n >= 0 {
			end = i + n + 1
		}
		b.text = b.text[:bytes.LastIndexByte(b.text, '\n')+1]
		for len(known) > 0 && known[0].Start < start {
			known = known[1:]
		}
		if len(known) > 0 && known[0].Start == start && known[0].End == end {
			b.show(known[0].Text)
		} else if at := len(b.text); output[end-1] == '\n' {
			b.draw(output[start:end])
			b.Drawn = append(b.Drawn, Drawn{start, end, b.text[at:]})
		} else {
			b.draw(output[start:end])
		}
		pos = end
	}
	return b.text
}

// show appends the text of a line that was drawn before.
func (b *Bulk) show(text []byte) {
	for i, c := range text[:len(text)-1] { // the last one is the line's own
		if c == '\n' {
			b.added = append(b.added, len(b.text)+i)
		}
	}
	b.text = append(b.text, text...)
}

// Line returns how many line feeds the output has before that index of the text.
func (b *Bulk) Line(text []byte, at int) int {
	n := bytes.Count(text[:at], []byte{'\n'})
	for _, i := range b.added {
		if i < at {
			n--
		}
	}
	return n
}

// draw appends the text of a line that sequences or controls change. A sequence that
// moves to another row ends a line, without a line feed in the output.
func (b *Bulk) draw(line []byte) {
	b.render.Tabs = true
	b.lines.Begin(0)
	b.lines.Spill = func(text []byte) { b.text = append(b.text, text...) }
	fed := false
	b.lines.Write(0, line, func(_, _ int64, raw []byte) {
		b.text = append(b.text, b.render.Text(raw)...)
		if fed = raw[len(raw)-1] == '\n'; !fed {
			b.added = append(b.added, len(b.text))
		}
		b.text = append(b.text, '\n')
	})
	if !fed || len(b.lines.Part) > 0 {
		b.text = append(b.text, b.render.Unfinished(b.lines.Part)...)
		if line[len(line)-1] == '\n' {
			b.text = append(b.text, '\n')
		}
	}
}

// colours returns the length of a control sequence that begins p and changes no text, and
// 0 if none does.
func colours(p []byte) int {
	if len(p) < 3 || p[0] != 0x1b || p[1] != '[' {
		return 0
	}
	for i, c := range p[2:min(len(p), 64)] {
		switch {
		case c >= 0x30 && c <= 0x3f:
		case c == 'm', passes(c, p[2:2+i]) && !moves(escape.Control, c, p[2:2+i]):
			return i + 3
		default:
			return 0
		}
	}
	return 0
}

// odd returns the index of the first byte that is not text as it stands: of a control,
// also in UTF-8, or an invisible character. It is len(p) if there is none.
func odd(p []byte) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for i := 0; i < len(p); {
		if i+8 <= len(p) {
			x := binary.LittleEndian.Uint64(p[i : i+8])
			found := (x | (x - ' '*ones) | ((x ^ 0x7f*ones) - ones)) & tops
			if found == 0 {
				i += 8
				continue
			}
			i += bits.TrailingZeros64(found) / 8 // bits above the lowest may be wrong
		}
		switch c := p[i]; {
		case c >= ' ' && c < 0x7f, c == '\n', c == '\t':
			i++
		case c == '\r':
			end := i + 1
			for end < len(p) && p[end] == '\r' {
				end++
			}
			if end == len(p) || p[end] != '\n' {
				return i
			}
			i = end + 1
		case c < utf8.RuneSelf:
			return i
		default:
			r, n := utf8.DecodeRune(p[i:])
			if r < 0xa0 || r == utf8.RuneError && n == 1 || screen.Hidden(r) {
				return i
			}
			i += n
		}
	}
	return len(p)
}
