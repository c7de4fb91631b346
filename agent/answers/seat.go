package answers

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"tether/internal/escape"
)

// Seat is an attached person's terminal, which answers what the program asks. It is for
// one goroutine, except for Leave. Its methods take the lock.
type Seat struct {
	a     *Answering
	scan  escape.Scanner
	seq   []byte    // a sequence that has begun
	begun time.Time // when it has
}

// Sit counts a person as attached, with a terminal that answers questions: all output
// from the present end on must be shown there. Input from there must pass Typed. The
// caller must Leave. It takes the lock.
func (a *Answering) Sit() *Seat {
	s := &Seat{a: a}
	a.mu.Lock()
	a.seats, a.until = append(a.seats, s), time.Time{}
	a.mu.Unlock()
	a.of.Attach(+1)
	return s
}

// Leave ends the seat.
func (s *Seat) Leave() {
	a := s.a
	a.mu.Lock()
	a.seats = slices.DeleteFunc(a.seats, func(o *Seat) bool { return o == s })
	if a.typed == s {
		a.typed = nil
	}
	a.mu.Unlock()
	a.of.Attach(-1)
}

// Dealt returns the raw offset up to which others have dealt with the program's
// questions.
func (s *Seat) Dealt() int64 {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	return s.a.dealt
}

// maxAnswer bounds a terminal's answer, in bytes. A longer sequence counts as typed.
const maxAnswer = 64 << 10

// answerPause is how long the rest of an answer may be on its way.
const answerPause = 200 * time.Millisecond

// Typed returns the part of input that the program is to get. If another seat answers its
// questions, this terminal's answers are left out, and the beginning of an answer waits
// for its rest. If the person types anything else, this terminal answers from now on.
func (s *Seat) Typed(input []byte) (out []byte) {
	if len(s.seq) > 0 && time.Since(s.begun) > answerPause { // a key that looks like the beginning of an answer
		out = s.types(out)
	}
	if s.answers() {
		return append(s.types(out), input...)
	}
	for i, c := range input {
		if len(s.seq) == 0 {
			s.begun = time.Now()
		}
		kind := s.scan.Next(c)
		if s.seq = append(s.seq, c); !s.scan.Outside() && len(s.seq) <= maxAnswer {
			continue
		}
		switch {
		case kind == escape.Control && isReport(s.scan.Params(), c), isStringAnswer(s.seq):
			s.seq = s.seq[:0]
		case kind == escape.Control && isEvent(s.scan.Params(), c): // nobody has typed
			out, s.seq = append(out, s.seq...), s.seq[:0]
		default:
			return append(s.types(out), input[i+1:]...)
		}
	}
	if n := len(s.seq); n == 1 || n == 2 { // Esc, or Alt and a key
		out = s.types(out)
	}
	return out
}

// types records that the person has typed here, and appends the sequence that has begun
// to dst.
func (s *Seat) types(dst []byte) []byte {
	s.a.mu.Lock()
	s.a.typed = s
	s.a.mu.Unlock()
	dst = append(dst, s.seq...)
	s.seq, s.scan = s.seq[:0], escape.Scanner{}
	return dst
}

// answers reports whether this terminal is the one that answers.
func (s *Seat) answers() bool {
	s.a.mu.Lock()
	defer s.a.mu.Unlock()
	a := s.a
	if a.elsewhere {
		return false
	}
	if a.typed != nil {
		return a.typed == s
	}
	return len(a.seats) == 0 || a.seats[0] == s
}

// isReport reports whether a control sequence from a terminal is an answer, or a report
// of a kind that a program has asked for: device attributes, status, cursor, modes,
// kitty's keyboard, sizes, colour schemes, settings of keys and graphics (xterm's control
// sequences, kitty's protocols). A modified F3 in the form of a cursor report counts as
// one.
func isReport(params []byte, final byte) bool {
	prefix, inter := byte(0), byte(0)
	if len(params) > 0 {
		if strings.IndexByte("<=>?", params[0]) >= 0 {
			prefix = params[0]
		}
		if last := params[len(params)-1]; last < '0' {
			inter = last
		}
	}
	switch final {
	case 'c':
		return prefix != 0
	case 'n':
		return prefix == '?' || string(params) == "0" || string(params) == "3"
	case 'R':
		return bytes.IndexByte(params, ';') > 0
	case 'y':
		return inter == '$'
	case 'u', 'S':
		return prefix == '?'
	case 'm':
		return prefix == '>'
	case 't':
		return prefix == 0 && len(params) > 0
	case 'x':
		return prefix == 0 && bytes.IndexByte(params, ';') > 0
	}
	return false
}

// isEvent reports whether a control sequence from a terminal tells of its focus, or of
// the mouse, which may only have moved.
func isEvent(params []byte, final byte) bool {
	switch final {
	case 'I', 'O':
		return len(params) == 0
	case 'M', 'm':
		return len(params) > 0 && params[0] == '<'
	}
	return false
}

// isStringAnswer reports whether a sequence is a DCS, OSC or APC with some content:
// people do not type those.
func isStringAnswer(seq []byte) bool {
	return len(seq) > 3 && seq[0] == 0x1b && strings.IndexByte("P]_", seq[1]) >= 0
}
