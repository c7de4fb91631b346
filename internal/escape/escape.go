// Package escape separates text from escape sequences in a terminal's output, for callers
// that show only the text. It knows the grammar of ECMA-48 as xterm.js reads it, and not
// the meaning of sequences; package shellint finds those of shells, redact blanks those
// that could harm, screen obeys those that move the cursor. These three follow 8-bit and
// malformed sequences, too, each for its own end; what is usual they take from
// [Complete].
//
//	var s escape.Scanner
//	for len(output) > 0 {
//		kind, n := s.Token(output)
//		if kind == escape.Text {
//			text = append(text, output[:n]...)
//		}
//		output = output[n:]
//	}
package escape

import (
	"bytes"
	"unicode/utf8"
)

// Kind is the kind of a byte.
type Kind uint8

// The kinds of bytes.
const (
	Text     Kind = iota // in no sequence; control characters other than ESC are text, too
	Part                 // a part of a sequence
	Control              // the last byte of a control sequence, which tells its function
	Function             // the last byte of an escape sequence, which tells its function
)

// maxParams bounds the kept bytes of parameters. Sequences that erase and move take a few
// digits.
const maxParams = 64

// CAN and SUB end any sequence without effect, and ESC ends what precedes it, as in DEC's
// terminals: https://vt100.net/emu/dec_ansi_parser. A line feed ends a sequence that a
// killed program has left, but not a string.
const (
	esc = 0x1b
	can = 0x18
	sub = 0x1a
	del = 0x7f
)

type state uint8

const (
	ground    state = iota
	afterESC        // also between ESC and the final byte
	inControl       // CSI, to its final byte
	inString        // DCS, APC, PM, SOS: to ESC, which begins ST or another sequence
	inOSC           // to BEL, too
)

// Scanner is a pure state machine; pieces of any size give the same. The zero value is at
// the start of the output. It is not safe for concurrent use.
type Scanner struct {
	state  state
	params []byte
}

// Next takes one byte. ESC followed by a character beyond ASCII begins no sequence: the
// character is text.
func (s *Scanner) Next(c byte) Kind {
	switch s.state {
	case ground:
		if c != esc {
			return Text
		}
		s.begun()
	case afterESC:
		return s.begin(c)
	case inControl:
		switch {
		case c == esc:
			s.begun()
		case c == '\n':
			s.state = ground
			return Text
		case c == can || c == sub:
			s.state = ground
		case c >= 0x40 && c <= 0x7e:
			s.state = ground
			return Control
		case len(s.params) < maxParams:
			s.params = append(s.params, c)
		}
	case inString, inOSC:
		if c == esc {
			s.begun()
		} else if c == can || c == sub || c == 0x07 && s.state == inOSC {
			s.state = ground
		}
	}
	return Part
}

// begun begins a sequence.
func (s *Scanner) begun() { s.state, s.params = afterESC, s.params[:0] }

// begin takes a byte after ESC (ECMA-48, 5.3 and 5.4).
func (s *Scanner) begin(c byte) Kind {
	switch {
	case c == esc:
		s.begun()
	case c >= 0x20 && c <= 0x2f: // the final byte follows
		s.params = append(s.params[:0], c)
	case c == '[' && len(s.params) == 0:
		s.state = inControl
	case c == ']' && len(s.params) == 0:
		s.state = inOSC
	case len(s.params) == 0 && (c == 'P' || c == '_' || c == '^' || c == 'X'):
		s.state = inString
	case c >= utf8.RuneSelf, c == '\n':
		s.state = ground
		return Text
	default:
		s.state = ground
		return Function
	}
	return Part
}

// Token takes the first token of p, which is not empty, and returns its length: a run of
// text, or bytes of one sequence up to its last byte or the end of p.
func (s *Scanner) Token(p []byte) (Kind, int) {
	if s.state == ground {
		n := bytes.IndexByte(p, esc)
		switch {
		case n < 0:
			return Text, len(p)
		case n > 0:
			return Text, n
		}
	}
	for i, c := range p {
		switch kind := s.Next(c); {
		case kind == Text && i > 0: // it ends a sequence without effect
			return Part, i
		case kind != Part || s.state == ground:
			return kind, i + 1
		}
	}
	return Part, len(p)
}

// Params returns the bytes between CSI and the final byte of the last control sequence,
// at most the first 64, or the last byte between ESC and the final byte. They are valid
// until the next sequence.
func (s *Scanner) Params() []byte { return s.params }

// Complete returns the length of the control sequence at the start of p if its last byte
// is there and it has nothing but a prefix and parameters, as nearly all have. Otherwise
// it returns 0.
func Complete(p []byte) int {
	if len(p) < 3 || p[0] != esc || p[1] != '[' {
		return 0
	}
	i := 2
	if p[i]-'<' < 4 {
		i++
	}
	for i < len(p) && p[i]-'0' < 12 {
		i++
	}
	if i < len(p) && p[i]-'@' < del-'@' {
		return i + 1
	}
	return 0
}

// NextC1 returns the index, from i on, of the next C1 control in UTF-8, U+0080 to U+009F,
// or the length of p.
func NextC1(p []byte, i int) int {
	for ; ; i++ {
		n := bytes.IndexByte(p[i:], 0xc2)
		if n < 0 || i+n+1 >= len(p) {
			return len(p)
		}
		if i += n; p[i+1]&0xe0 == 0x80 {
			return i
		}
	}
}

// Outside reports that no sequence is pending.
func (s *Scanner) Outside() bool { return s.state == ground }
