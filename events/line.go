package events

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"tether/screen"
)

const (
	maxRaw  = 16 << 10 // bytes of a line as printed; the rest is not examined
	maxText = 4 << 10  // bytes of a line that are matched
	maxShow = 500      // bytes of a line that are reported
)

// A line is the output between two ends: newlines, and control sequences that move the cursor to another row, so that its bounds follow
// from the bytes alone. Its text is what a very wide row of a screen shows then.

// splitter divides output into lines. It is fed piece by piece; lines that lie in one piece are not copied.
type splitter struct {
	start   int64  // offset of the unfinished line
	part    []byte // what has arrived of that line
	skipped bool   // it has more than maxRaw bytes
	cut     bool   // part begins behind start
}

// feed takes a piece of output that begins at an offset. It calls lines for each run of whole lines that end in the piece; text is valid
// until lines returns.
func (s *splitter) feed(at int64, p []byte, lines func(start int64, text []byte)) {
	for len(p) > 0 {
		if len(s.part) == 0 && !s.skipped {
			s.start = at
		} else if used := s.finish(p); used > 0 {
			s.keep(p[:used])
			lines(s.start, s.part)
			at, p = at+int64(used), p[used:]
			s.begin(at)
			continue
		}
		n := lastEnd(p)
		if n == 0 {
			s.keep(p)
			return
		}
		if len(s.part) > 0 || s.skipped {
			first := firstEnd(p)
			s.keep(p[:first])
			lines(s.start, s.part)
			at, p, n = at+int64(first), p[first:], n-first
			s.begin(at)
		}
		if n > 0 {
			lines(at, p[:n])
			at, p = at+int64(n), p[n:]
			s.begin(at)
		}
	}
}

// finish returns how many bytes of p complete a control sequence at the end of the line that ends the line; 0 if there is none.
func (s *splitter) finish(p []byte) int {
	tail := s.part[max(0, len(s.part)-maxSequence):]
	i := bytes.LastIndexByte(tail, esc)
	if i < 0 {
		return 0
	}
	if n, _ := sequence(tail[i:]); n < len(tail)-i {
		return 0 // it is complete
	}
	var joined [2 * maxSequence]byte
	whole := append(append(joined[:0], tail[i:]...), p[:min(len(p), maxSequence)]...)
	if n, moves := sequence(whole); moves {
		return max(0, n-(len(tail)-i))
	}
	return 0
}

// begin starts a new line at an offset.
func (s *splitter) begin(at int64) {
	s.start, s.part, s.skipped, s.cut = at, s.part[:0], false, false
}

func (s *splitter) keep(p []byte) {
	if room := maxRaw - len(s.part); len(p) > room {
		// Progress bars that are redrawn in place make long lines; their visible text is after the last carriage return.
		s.part = append(s.part, p...)
		if i := bytes.LastIndexByte(s.part[:len(s.part)-1], '\r'); i > 0 && len(s.part)-i <= maxRaw {
			s.part, s.cut = append(s.part[:0], s.part[i:]...), true
			return
		}
		s.part, s.skipped = s.part[:maxRaw], true
		return
	}
	s.part = append(s.part, p...)
}

// firstEnd returns the length of the line at the start of p, including its end; 0 if the line has no end.
func firstEnd(p []byte) int {
	n := bytes.IndexByte(p, '\n') + 1
	head := p
	if n > 0 {
		head = p[:n]
	}
	if i := bytes.IndexByte(head, esc); i >= 0 {
		if m := moveEnd(head, i, false); m > 0 {
			return m
		}
	}
	return n
}

// lastEnd returns how many bytes of p are whole lines.
func lastEnd(p []byte) int {
	n := bytes.LastIndexByte(p, '\n') + 1
	if i := bytes.IndexByte(p[n:], esc); i >= 0 {
		if m := moveEnd(p[n:], i, true); m > 0 {
			return n + m
		}
	}
	return n
}

const (
	esc         = 0x1b
	maxSequence = 64 // bytes of a control sequence that is understood
)

// moveEnd returns the index after the first, or last, control sequence at or after from that moves the cursor to another row; 0 if there is
// none.
func moveEnd(p []byte, from int, last bool) (end int) {
	for i := from; i < len(p); {
		if p[i] != esc {
			next := bytes.IndexByte(p[i:], esc)
			if next < 0 {
				break
			}
			i += next
		}
		n, moves := sequence(p[i:])
		if i += n; moves {
			end = i
			if !last {
				break
			}
		}
	}
	return end
}

// sequence measures the control sequence at the start of p and says whether it moves the cursor to another row.
func sequence(p []byte) (n int, moves bool) {
	if len(p) < 2 {
		return len(p), false
	}
	if p[1] == esc {
		return 1, false // another sequence begins
	}
	if p[1] != '[' {
		return 2, p[1] == 'D' || p[1] == 'E' || p[1] == 'M' || p[1] == 'c'
	}
	for n = 2; n < len(p) && n < maxSequence; n++ {
		c := p[n]
		switch {
		case c >= 0x40 && c <= 0x7e:
			return n + 1, strings.IndexByte("ABEFHLMSTdf", c) >= 0 || c == 'J' || c == 'h' && alternates(p[2:n]) || c == 'l' && alternates(p[2:n])
		case c < 0x20 || c > 0x7e:
			return n, false
		}
	}
	return n, false
}

// alternates reports whether a private mode is one that switches to the alternate screen.
func alternates(params []byte) bool {
	return bytes.Equal(params, []byte("?1049")) || bytes.Equal(params, []byte("?1047")) || bytes.Equal(params, []byte("?47"))
}

// odd reports whether the visible text of p may differ from its bytes.
func odd(p []byte) bool {
	for _, c := range p {
		if strange[c] {
			return true
		}
	}
	r := bytes.Count(p, []byte("\r"))
	return r > 0 && r != bytes.Count(p, []byte("\r\n"))
}

// strange are the bytes that may make a line's visible text differ: controls except for those at its end, and first bytes of invisible
// characters.
var strange = func() (t [256]bool) {
	for c := range ' ' {
		t[c] = c != '\n' && c != '\r'
	}
	t[0x7f], t[0xc2], t[0xe2], t[0xef], t[0xf3] = true, true, true, true, true
	return t
}()

// renderer turns lines into text, with the targets of links. It is for one goroutine.
type renderer struct {
	row *screen.Screen
	buf []byte
}

// text returns the visible text of a line, at most maxText bytes, valid until the next call.
func (r *renderer) text(line []byte) []byte {
	line = bytes.TrimRight(line, "\r\n")
	if odd(line) || bytes.IndexByte(line, '\r') >= 0 {
		var ok bool
		if r.buf, ok = unstyled(r.buf[:0], line); !ok {
			return r.draw(line)
		}
		line = r.buf
	}
	if len(line) > maxText {
		line = []byte(cut(string(line), maxText))
	}
	if !utf8.Valid(line) {
		return r.draw(line)
	}
	return bytes.TrimRight(line, " ")
}

// unstyled appends p without colours and the like. ok is false if it has other sequences.
func unstyled(dst, p []byte) (out []byte, ok bool) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, esc)
		if i < 0 {
			i = len(p)
		}
		if odd(p[:i]) || bytes.IndexByte(p[:i], '\r') >= 0 {
			return dst, false
		}
		dst = append(dst, p[:i]...)
		if p = p[i:]; len(p) > 0 {
			n, _ := sequence(p)
			if n < 3 || p[1] != '[' || p[n-1] != 'm' {
				return dst, false
			}
			p = p[n:]
		}
	}
	return dst, true
}

// draw is text for a line that must be drawn on a screen.
func (r *renderer) draw(line []byte) []byte {
	if r.row == nil {
		r.row = screen.New(1000, 3)
		r.row.ShowLinks()
	}
	_, _ = r.row.Write([]byte("\x18\x1bc")) // resets the state that the last line has left
	r.row.Keep(0)
	_, _ = r.row.Write(line)
	text, _ := r.row.History()
	text = strings.TrimRight(strings.ReplaceAll(strings.Trim(text, "\n"), "\n", " "), " ")
	return []byte(cut(text, maxText))
}

// redrawn reports whether a line has a carriage return after its first n bytes, after which it is drawn again.
func redrawn(line []byte, n int64) bool {
	if n >= int64(len(line)) {
		return n > int64(len(line))
	}
	rest := bytes.TrimRight(line[n:], "\r\n")
	return bytes.IndexByte(rest, '\r') >= 0 || len(rest) > 0 && n > 0 && line[n-1] == '\r'
}

// cut returns the beginning of s, at most n bytes, in whole characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
