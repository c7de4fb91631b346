package screen

import "unicode/utf8"

// state is where the parser stands, after the diagram of the DEC terminals
// (https://vt100.net/emu/dec_ansi_parser).
type state uint8

const (
	ground     state = iota
	escape           // after ESC
	escapeMore       // ESC and intermediate bytes
	control          // after CSI
	skipping         // a CSI that makes no sense, to its final byte
	osc              // to BEL or ST
	str              // DCS, SOS, PM, APC: to ST
)

// Bounds of a control sequence.
const (
	maxParams = 16
	maxParam  = 1 << 16
)

// parser keeps what of the input is incomplete. All is bounded.
type parser struct {
	state  state
	params [maxParams]int // -1: not given
	n      int            // of params
	prefix byte           // one of < = > ?, or 0
	inter  byte           // the intermediate byte, or 0
	sub    bool           // in a sub-parameter, which nothing here uses
	utf8   [utf8.UTFMax]byte
	held   int // bytes in utf8
	// pending is the number of bytes since a border between characters and
	// sequences.
	pending int
}

// Write interprets p. It takes everything and never fails; how p was cut into
// pieces makes no difference.
func (s *Screen) Write(p []byte) (int, error) {
	n := len(p)
	k := &s.parser
	k.pending += n
	for len(p) > 0 {
		if run := s.plain(p); run > 0 {
			p = p[run:]
		} else if k.held == 0 && p[0] < utf8.RuneSelf {
			s.rune(rune(p[0]))
			p = p[1:]
		} else {
			p = s.multibyte(p)
		}
		if k.state == ground && k.held == 0 {
			k.pending = len(p)
		}
	}
	return n, nil
}

// Pending is the number of bytes at the end of the input that begin a
// character or a sequence and do not finish it. Another Screen that goes on
// before them loses nothing.
func (s *Screen) Pending() int { return s.parser.pending }

// plain prints the printable ASCII at the beginning of p.
func (s *Screen) plain(p []byte) int {
	if s.parser.state != ground || s.parser.held > 0 || s.insert || s.pen.charset[s.pen.shift] {
		return 0
	}
	n := 0
	for n < len(p) && p[n] >= ' ' && p[n] < 0x7f {
		n++
	}
	for run := p[:n]; len(run) > 0; {
		if s.pen.col >= s.cols { // over the margin, where put knows what to do
			s.put(rune(run[0]), 1)
			run = run[1:]
			continue
		}
		k := min(len(run), s.cols-s.pen.col)
		s.on.lines[s.pen.row].putRun(s.pen.col, run[:k])
		s.pen.col += k
		s.last = rune(run[k-1])
		run = run[k:]
	}
	return n
}

// multibyte takes one character that is not ASCII, as far as it is there.
func (s *Screen) multibyte(p []byte) []byte {
	k := &s.parser
	had := k.held
	k.held += copy(k.utf8[k.held:], p)
	if !utf8.FullRune(k.utf8[:k.held]) {
		return p[k.held-had:]
	}
	r, size := utf8.DecodeRune(k.utf8[:k.held])
	if size < had { // an invalid byte, and what was held after it
		rest := k.utf8[size:had]
		k.held = copy(k.utf8[:], rest)
		s.rune(r)
		return p
	}
	k.held = 0
	s.rune(r)
	return p[size-had:]
}

// rune moves the machine.
func (s *Screen) rune(r rune) {
	k := &s.parser
	switch {
	case r == 0x18 || r == 0x1a: // CAN, SUB
		k.state, s.last = ground, 0
	case r == 0x1b:
		k.begin(escape)
	case r >= 0x80 && r < 0xa0:
		s.c1(byte(r))
	case k.state == osc || k.state == str:
		if r == 0x07 && k.state == osc {
			k.state = ground
		}
	case r < ' ':
		s.c0(byte(r))
	case r == 0x7f:
	case k.state == ground:
		s.print(r)
	case r > 0x7f:
		k.state = ground // nothing of a sequence is beyond ASCII
	default:
		s.sequence(byte(r))
	}
}

func (k *parser) begin(to state) {
	k.state, k.n, k.prefix, k.inter, k.sub = to, 0, 0, 0, false
}

// c1 does what the 8-bit forms of ESC and a letter mean.
func (s *Screen) c1(c byte) {
	s.parser.begin(escape)
	s.escapeFinal(c - 0x40)
}

// sequence takes a printable byte of an escape sequence.
func (s *Screen) sequence(c byte) {
	k := &s.parser
	switch k.state {
	case escape, escapeMore:
		if c < 0x30 {
			k.state, k.inter = escapeMore, c
			return
		}
		s.escapeFinal(c)
	case control:
		s.controlByte(c)
	case skipping:
		if c >= 0x40 {
			k.state = ground
		}
	}
}

func (s *Screen) controlByte(c byte) {
	k := &s.parser
	switch {
	case c >= 0x40:
		k.state = ground
		s.control(c)
	case c >= 0x3c: // < = > ?
		if k.n > 0 || k.prefix != 0 || k.inter != 0 {
			k.state = skipping
			return
		}
		k.prefix = c
	case c < 0x30:
		k.inter = c
	case k.inter != 0:
		k.state = skipping
	case c == ';':
		if k.n == 0 {
			k.add(-1)
		}
		k.add(-1)
		k.sub = false
	case c == ':':
		k.sub = true
	case !k.sub:
		k.digit(int(c - '0'))
	}
}

func (k *parser) add(v int) {
	if k.n < maxParams {
		k.params[k.n] = v
	}
	k.n++
}

func (k *parser) digit(d int) {
	if k.n == 0 {
		k.add(-1)
	}
	if i := k.n - 1; i < maxParams {
		k.params[i] = min(max(k.params[i], 0)*10+d, maxParam)
	}
}

// param returns the i-th parameter, def if it is absent or 0.
func (k *parser) param(i, def int) int {
	if i >= min(k.n, maxParams) || k.params[i] <= 0 {
		return def
	}
	return k.params[i]
}
