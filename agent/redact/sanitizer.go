package redact

import (
	"bytes"
	"strconv"

	"tether/internal/escape"
)

// Bounds of control strings, in bytes.
const (
	maxString  = 4 << 10 // bytes held to judge one; a longer one is blanked
	maxControl = 1 << 10 // bytes of an image's description; parameters of a control sequence that passes

	// Between two calls of renew: see Filter.Renew.
	maxNotices = 10  // notifications
	maxTitles  = 600 // titles that are set or taken back: a shell with one for each command and each prompt has room for 300 commands
)

// sanitizer blanks the control sequences that could harm an observer's terminal. Like
// redactor it is a pure state machine.
//
//	ground --ESC--> afterESC --[--> control --final--> ground
//	                afterESC --] P _ ^ X--> held --judged--> passed or blanked --terminator--> ground
//
// A sequence that passes is unchanged. A blanked string becomes an application program
// command, which terminals ignore: its introducer, filler, and ESC \ at the end.
type sanitizer struct {
	opts  *Options
	masks []Mask
	off   int64 // after the bytes fed
	done  int64 // up to here it is decided

	state state
	c1    int // index in the present call of the next C1 control, see ground
	// Between these in the present call only a C1 control can do harm, see feed.
	plainFrom, plainTo int

	held []byte // of the sequence, behind its introducer: without controls, or of a string that is not judged yet

	// State in a string.
	kind    byte  // the byte after ESC: ] P _ ^ X
	intro   int64 // offset of its introducer without an ESC
	payload int64 // offset behind the introducer
	wait    bool  // only its end or its length judges it
	escape  bool  // the last byte was an ESC
	fill    int64 // blanked: masks are made up to here
	images  int64 // bytes that are left for images
	notices int   // notifications that are left
	titles  int   // titles that are still allowed
	cut     int64 // image: the part from here on exceeds the allowance
	chunks  bool  // the last image goes on in another string
}

type state uint8

const (
	ground   state = iota
	afterESC       // also behind intermediate bytes
	control
	held    // a string that is not judged yet
	passed  // one that is let through
	image   // an image, counted
	ending  // an image beyond the allowance
	blanked // one that is not let through
	nulled  // blanked, without room for an introducer
)

func (s *sanitizer) atRest() bool { return s.state == ground && !s.chunks }

func (s *sanitizer) renew() {
	s.images, s.notices, s.titles = s.opts.Images, maxNotices, maxTitles
	if s.opts.Silent {
		s.notices = 0
	}
}

// hush blanks the bells in text.
func (s *sanitizer) hush(text []byte, off int64) {
	for i, c := range text {
		if c == bel && s.opts.Silent {
			s.add(off+int64(i), off+int64(i)+1, Null)
		}
	}
}

// feed takes the next bytes, whole characters. p[from:to] has no sequences other than
// complete harmless ones; it is empty if none is known to be so.
func (s *sanitizer) feed(p []byte, from, to int) {
	base := s.off
	s.off += int64(len(p))
	s.c1, s.plainFrom, s.plainTo = -1, from, to
	for i := 0; i < len(p); {
		switch s.state {
		case ground:
			i = s.ground(p, i, base)
		case afterESC:
			i = s.escaped(p, i, base)
		case control:
			i = s.control(p, i, base)
		default:
			i = s.string(p, i, base)
		}
	}
	s.settle()
}

// ground skips text, and control sequences without effect, and returns the position after
// the next introducer.
func (s *sanitizer) ground(p []byte, i int, base int64) int {
	at := i
	if i >= s.plainFrom && i < s.plainTo {
		at = s.plainTo
	}
	at = nextEscape(p, at)
	if s.c1 < i {
		s.c1 = escape.NextC1(p, i)
	}
	if s.opts.Silent {
		s.hush(p[i:min(at, s.c1)], base+int64(i))
	}
	if s.c1 < at {
		return s.introduced(p, p[s.c1+1]-0x40, base+int64(s.c1), s.c1+2, base)
	}
	if at == len(p) {
		return at
	}
	s.state, s.held = afterESC, s.held[:0]
	return at + 1
}

// nextEscape returns the index, from i on, of the next ESC that does not begin a complete
// control sequence which passes with any parameters, or the length of p.
func nextEscape(p []byte, i int) int {
	for {
		n := bytes.IndexByte(p[i:], esc)
		if n < 0 {
			return len(p)
		}
		i += n
		if n = escape.Complete(p[i:]); n == 0 || n > maxControl || !controls[prefixIndex(p[i+2])][p[i+n-1]] {
			return i
		}
		i += n
	}
}

// escaped goes on after an ESC.
func (s *sanitizer) escaped(p []byte, i int, base int64) int {
	c := p[i]
	switch {
	case c == can || c == sub || c >= 0x80:
		s.state = ground
		return i // a C1 control begins anew
	case c == esc:
		s.held = s.held[:0]
	case c < 0x20 || c == del: // a terminal obeys it at once, and the sequence goes on
		s.hush(p[i:i+1], base+int64(i))
	case c < 0x30:
		s.keep(c)
	case len(s.held) > 0:
		if !allowedEscape(s.held[0], c) {
			s.add(base+int64(i), base+int64(i)+1, Cancel)
		}
		s.state = ground
	default:
		return s.introduced(p, c, base+int64(i), i+1, base)
	}
	return i + 1
}

// introduced begins a sequence after its introducer; c is the introducer in its seven-bit
// form and lies in front of p[i].
func (s *sanitizer) introduced(p []byte, c byte, intro int64, i int, base int64) int {
	s.state, s.held = ground, s.held[:0]
	switch c {
	case '[':
		s.state = control
	case ']', 'P', '_', '^', 'X':
		s.state, s.kind, s.intro, s.payload, s.escape = held, c, intro, base+int64(i), false
		s.wait = false
	default:
		if !allowedEscape(0, c) {
			s.add(intro, base+int64(i), Cancel)
		}
	}
	return i
}

// control takes bytes of a control sequence. A sequence that is not listed is cancelled
// at its final byte.
func (s *sanitizer) control(p []byte, i int, base int64) int {
	for ; i < len(p); i++ {
		switch c := p[i]; {
		case c == esc, c == can, c == sub, c >= 0x80:
			s.state = ground
			return i
		case c >= 0x40 && c < del:
			if !s.allows(c) {
				s.add(base+int64(i), base+int64(i)+1, Cancel)
			}
			s.state = ground
			return i + 1
		case c < 0x20:
			s.hush(p[i:i+1], base+int64(i))
		case c != del:
			s.keep(c)
		}
	}
	return i
}

// keep keeps a byte of a sequence that is no string.
func (s *sanitizer) keep(c byte) {
	if len(s.held) < maxControl {
		s.held = append(s.held, c)
	}
}

// allows reports whether a control sequence is listed. It is called once for each,
// because it may use up an allowance.
func (s *sanitizer) allows(final byte) bool {
	prefix, params := 0, s.held
	if len(params) > 0 {
		prefix = prefixIndex(params[0])
	}
	switch inter := bytes.IndexFunc(params, func(c rune) bool { return c < '0' }); {
	case len(params) == maxControl:
		return false
	case inter >= 0:
		return prefix == 0 && inter == len(params)-1 && listed(intermediates, params[inter], final)
	case prefix == prefixIndex('?') && final == 'h':
		for mode := range bytes.SplitSeq(params[1:], []byte{';'}) {
			if n, _ := strconv.Atoi(string(mode)); !modes[n] {
				return false
			}
		}
		return true
	case prefix == 0 && final == 't': // a title is put on a stack, and taken back
		first, _, _ := bytes.Cut(params, []byte{';'})
		n, _ := strconv.Atoi(string(first))
		return n == 22 || n == 23 && spend(&s.titles)
	}
	return controls[prefix][final]
}

func (s *sanitizer) add(from, to int64, kind Kind) {
	if from >= to {
		return
	}
	if n := len(s.masks); n > 0 && s.masks[n-1].End == from && s.masks[n-1].Kind == kind && (kind == Blank || kind == Null) {
		s.masks[n-1].End = to
		return
	}
	s.masks = append(s.masks, Mask{from, to, kind})
}
