// Package escape separates text from escape sequences in a terminal's output, for callers that show only the text. It knows the grammar of
// ECMA-48 and not the meaning of sequences; package shellint finds those of shells, screen obeys those that move the cursor.
//
//	var s escape.Scanner
//	for _, c := range output {
//	if s.Next(c) == escape.Text {
//	text = append(text, c)
//	}
//	}
package escape

import "unicode/utf8"

// Kind is the kind of a byte.
type Kind uint8

// The kinds of bytes.
const (
	Text    Kind = iota // in no sequence; control characters other than ESC are text, too
	Part                // a part of a sequence
	Control             // the last byte of a control sequence, which tells its function
)

// maxParams bounds the kept bytes of parameters. Sequences that erase and move take a few digits.
const maxParams = 64

// CAN and SUB end any sequence without effect, and ESC ends a control sequence, as in DEC's terminals: https://vt100.net/emu/dec_ansi_parser.
const (
	can = 0x18
	sub = 0x1a
)

type state uint8

const (
	ground      state = iota
	afterESC          // also between ESC and the final byte
	inControl         // CSI, to its final byte
	inString          // OSC, DCS, APC, PM, SOS: to BEL or ST
	inStringESC       // ESC in a string
)

// Scanner is a pure state machine; pieces of any size give the same. The zero value is at the start of the output. It is not safe for
// concurrent use.
type Scanner struct {
	state  state
	params []byte
}

// Next takes one byte. ESC followed by a character beyond ASCII begins no sequence: the character is text.
func (s *Scanner) Next(c byte) Kind {
	switch s.state {
	case ground:
		if c != 0x1b {
			return Text
		}
		s.state = afterESC
	case afterESC:
		return s.begin(c)
	case inControl:
		switch {
		case c == 0x1b:
			s.state = afterESC
		case c == can || c == sub:
			s.state = ground
		case c >= 0x40 && c <= 0x7e:
			s.state = ground
			return Control
		case len(s.params) < maxParams:
			s.params = append(s.params, c)
		}
	case inString:
		if c == 0x07 || c == can || c == sub {
			s.state = ground
		} else if c == 0x1b {
			s.state = inStringESC
		}
	case inStringESC:
		s.state = inString
		if c == '\\' || c == can || c == sub {
			s.state = ground
		}
	}
	return Part
}

// begin takes the byte after ESC (ECMA-48, 5.3 and 5.4).
func (s *Scanner) begin(c byte) Kind {
	switch {
	case c == '[':
		s.state, s.params = inControl, s.params[:0]
	case c == ']', c == 'P', c == '_', c == '^', c == 'X':
		s.state = inString
	case c >= 0x20 && c <= 0x2f, c == 0x1b: // the final byte follows
	case c >= utf8.RuneSelf:
		s.state = ground
		return Text
	default:
		s.state = ground
	}
	return Part
}

// Params returns the bytes between CSI and the final byte of the last control sequence, at most the first 64. They are valid until the next
// sequence.
func (s *Scanner) Params() []byte { return s.params }

// Outside reports that no sequence is pending.
func (s *Scanner) Outside() bool { return s.state == ground }
