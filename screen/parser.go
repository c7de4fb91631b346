package screen

import (
	"bytes"
	"unicode/utf8"

	"tether/internal/escape"
)

// state is a state of the parser, after the diagram of the DEC terminals
// (https://vt100.net/emu/dec_ansi_parser). The parser follows xterm.js where that
// differs.
type state uint8

const (
	ground state = iota
	afterESC
	escapeInter // ESC and intermediate bytes
	csiEntry    // after CSI
	csiParam    // in its parameters
	csiInter    // in its intermediate bytes
	csiIgnore   // in a malformed CSI sequence, to its final byte
	osc         // to BEL or ST
	str         // SOS, PM, APC: to ST
	dcsEntry    // after DCS
	dcsParam
	dcsInter
	dcsIgnore
	dcsBody // to ST
)

// Bounds of a sequence.
const (
	maxParams = 32
	maxSubs   = 32
	maxParam  = 1 << 24
	maxRaw    = 4 << 10 // bytes; a longer sequence has no effect
)

// parser holds incomplete input, which is bounded.
type parser struct {
	state   state
	collect uint32 // prefix and intermediate bytes
	params  [maxParams]int
	n       int // of params
	subs    [maxSubs]int
	nsubs   int
	from    [maxParams]uint8 // index in subs of each parameter's first sub-parameter
	past    [maxParams]uint8 // index in subs behind each parameter's last sub-parameter
	sub     bool             // digits belong to a sub-parameter
	full    bool             // there are more than maxParams parameters
	fullSub bool             // there are more than maxSubs sub-parameters
	raw     []byte           // bytes of the sequence, without controls within it, which have taken effect
	body    int              // index in raw at which a string begins
	utf8    [utf8.UTFMax]byte
	held    int // bytes in utf8
	// pending is the number of bytes since the last boundary between characters or
	// sequences.
	pending int
}

// Write interprets p. It never fails, and the division of output into calls makes no
// difference.
func (s *Screen) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		piece := p[:min(len(p), effortPiece)]
		s.effort.earn(len(piece))
		s.interpret(piece)
		p = p[len(piece):]
	}
	return n, nil
}

func (s *Screen) interpret(p []byte) {
	k := &s.parser
	k.pending += len(p)
	for len(p) > 0 {
		if k.state == ground && k.held == 0 {
			p = s.ground(p)
			k.pending = len(p)
			if len(p) == 0 {
				break
			}
		}
		if k.held == 0 && p[0] < utf8.RuneSelf {
			s.rune(rune(p[0]))
			p = p[1:]
		} else {
			p = s.multibyte(p)
		}
	}
	if k.state == ground && k.held == 0 {
		k.pending = 0
	}
}

// ground is the fast path for the ground state: it carries out ASCII text, controls and
// complete control sequences, and returns the rest of p from the first byte that it does
// not handle.
func (s *Screen) ground(p []byte) []byte {
	for len(p) > 0 {
		if s.blind {
			if p = p[plain(p):]; len(p) == 0 {
				return p
			}
		}
		switch c := p[0]; {
		case c >= ' ' && c < 0x7f && s.sets.used == 0:
			n := 1
			for n < len(p) && p[n] >= ' ' && p[n] < 0x7f {
				n++
			}
			s.run(p[:n])
			p = p[n:]
		case c < ' ' && c != 0x1b:
			s.c0(c)
			p = p[1:]
		case c == 0x1b:
			n := s.quick(p)
			if n == 0 {
				return p
			}
			p = p[n:]
		default:
			return p
		}
	}
	return p
}

// plain returns the length of the text at the beginning of p that changes nothing but
// cells.
func plain(p []byte) int {
	n := len(p)
	for i, c := range p[:min(n, 32)] { // most text between sequences is short
		if c == 0x1b || c == 0x0e || c == 0x0f || c == 0xc2 {
			return i
		}
	}
	for _, c := range [...]byte{0x1b, 0x0e, 0x0f, 0xc2} { // ESC, SO, SI, and the first byte of 8-bit controls
		if i := bytes.IndexByte(p[:n], c); i >= 0 {
			n = i
		}
	}
	return n
}

// quick carries out the control sequence at the beginning of p if it is complete and of
// the usual form. It returns the sequence's length, or 0.
func (s *Screen) quick(p []byte) int {
	n := escape.Complete(p)
	if n == 0 || p[2] >= '<' && p[2] < '?' {
		return 0
	}
	final, params, private := p[n-1], p[2:n-1], p[2] == '?'
	if final == 'm' && !private {
		s.stylePen(params)
		s.dipStyle()
	} else {
		k := &s.parser
		k.begin(ground)
		if private {
			k.collect, params = '?', params[1:]
		}
		for _, c := range params {
			k.parameter(c)
		}
		s.control(final)
	}
	s.last = 0
	return n
}

// Pending returns the number of bytes at the end of the input that begin a character or a
// sequence but do not finish it. Another Screen that continues before these bytes loses
// nothing.
func (s *Screen) Pending() int { return s.parser.pending }

// Settle drops the incomplete input that [Screen.Pending] counts, as if it had not come.
func (s *Screen) Settle() {
	k := &s.parser
	k.state, k.held, k.pending = ground, 0, 0
}

// multibyte takes one non-ASCII character, or the part that p contains. It returns the
// rest of p.
func (s *Screen) multibyte(p []byte) []byte {
	k := &s.parser
	had := k.held
	k.held += copy(k.utf8[k.held:], p)
	if !utf8.FullRune(k.utf8[:k.held]) {
		return p[k.held-had:]
	}
	r, size := utf8.DecodeRune(k.utf8[:k.held])
	if size < had { // an invalid byte, and the bytes held after it
		rest := k.utf8[size:had]
		k.held = copy(k.utf8[:], rest)
		s.rune(r)
		return p
	}
	k.held = 0
	s.rune(r)
	return p[size-had:]
}

// rune makes one transition of the state machine.
func (s *Screen) rune(r rune) {
	k := &s.parser
	switch {
	case r == 0x18 || r == 0x1a: // CAN, SUB
		k.state, s.last = ground, 0
	case r == 0x1b:
		if k.state == osc {
			s.endOSC()
		}
		k.begin(afterESC)
		k.raw = append(k.raw, 0x1b)
	case r >= 0x80 && r < 0xa0:
		s.c1(r)
	case k.state == ground:
		if r < ' ' {
			s.c0(byte(r))
		} else if r != 0x7f && r != 0xfeff {
			s.print(r)
		}
	case k.state >= osc:
		s.inString(r)
	case r < ' ': // a control within a sequence takes effect at once
		s.c0(byte(r))
	case r == 0x7f:
	case r > 0x7f:
		if k.state != csiIgnore {
			k.state = ground // a sequence contains only ASCII
		}
	default:
		k.raw = append(k.raw, byte(r))
		if len(k.raw) > maxRaw {
			k.state = csiIgnore
			k.raw = k.raw[:maxRaw]
		}
		s.sequence(byte(r))
	}
}

func (k *parser) begin(to state) {
	k.state, k.collect, k.n, k.nsubs, k.sub, k.full, k.fullSub = to, 0, 1, 0, false, false, false
	k.params[0], k.from[0], k.past[0] = 0, 0, 0
	k.raw = k.raw[:0]
}

// c1 carries out an 8-bit control character.
func (s *Screen) c1(r rune) {
	k := &s.parser
	to := ground
	switch r {
	case 0x84:
		s.index()
	case 0x85:
		s.on.x = 0
		s.index()
	case 0x88:
		s.setTab()
	case 0x90:
		to = dcsEntry
	case 0x98, 0x9e, 0x9f:
		to = str
	case 0x9b:
		to = csiEntry
	case 0x9d:
		to = osc
	}
	if r != 0x9c && r < 0x98 || r == 0x99 || r == 0x9a {
		s.last = 0
	}
	if to == ground {
		k.state = ground
		return
	}
	k.begin(to)
	k.raw = utf8.AppendRune(k.raw, r)
	k.body = len(k.raw)
}

// sequence takes a printable byte of an escape or control sequence.
func (s *Screen) sequence(c byte) {
	k := &s.parser
	switch k.state {
	case afterESC, escapeInter:
		if c < 0x30 {
			k.state, k.collect = escapeInter, k.collect<<8|uint32(c)
			return
		}
		s.escapeFinal(c)
	case csiIgnore:
		if c >= 0x40 {
			k.state = ground
		}
	default:
		s.controlByte(c)
	}
}

// controlByte takes a byte of a control sequence.
func (s *Screen) controlByte(c byte) {
	k := &s.parser
	switch {
	case c >= 0x40:
		k.state = ground
		s.control(c)
		s.last = 0
	case c < 0x30:
		k.state, k.collect = csiInter, k.collect<<8|uint32(c)
	case k.state == csiInter, c >= 0x3c && k.state == csiParam:
		k.state = csiIgnore
	case c >= 0x3c:
		k.state, k.collect = csiParam, uint32(c)
	default:
		k.state = csiParam
		k.parameter(c)
	}
}

// parameter takes a digit, colon or semicolon.
func (k *parser) parameter(c byte) {
	switch c {
	case ';':
		k.sub = false
		if k.n >= maxParams {
			k.full = true
			return
		}
		k.params[k.n], k.from[k.n], k.past[k.n] = 0, uint8(k.nsubs), uint8(k.nsubs)
		k.n++
	case ':':
		k.sub = true
		if k.full || k.nsubs >= maxSubs {
			k.fullSub = true
			return
		}
		k.subs[k.nsubs] = -1
		k.nsubs++
		k.past[k.n-1]++
	default:
		k.digit(int(c - '0'))
	}
}

func (k *parser) digit(d int) {
	at := &k.params[k.n-1]
	if k.sub {
		if k.fullSub || k.nsubs == 0 {
			return
		}
		at = &k.subs[k.nsubs-1]
	}
	if !k.full {
		*at = min(max(*at, 0)*10+d, maxParam)
	}
}

// param returns the i-th parameter, or def if it is absent or 0.
func (k *parser) param(i, def int) int {
	if i >= k.n || k.params[i] <= 0 {
		return def
	}
	return k.params[i]
}

// inString takes a character of a string (OSC, DCS, SOS, PM or APC).
func (s *Screen) inString(r rune) {
	k := &s.parser
	switch k.state {
	case osc:
		if r == 0x07 {
			s.endOSC()
			k.state = ground
			return
		}
		if r < ' ' {
			return
		}
	case str:
		if r >= 0xa0 {
			k.state = ground
			return
		}
	case dcsEntry, dcsParam, dcsInter:
		if k.state = k.state.dcsNext(r); r == '|' && k.clearsKeyStrings() {
			s.forget(keyStrings, 0)
		}
	case dcsBody:
		if r == '/' && k.keyStringsSet() {
			s.keep(keyStrings, 0, "")
		}
	}
	if len(k.raw) < maxRaw {
		k.raw = utf8.AppendRune(k.raw, r)
	}
}

// dcsNext returns the next state after a character before the body of a device control
// string.
func (at state) dcsNext(r rune) state {
	switch {
	case r < ' ' || r == 0x7f:
		return at
	case r > 0x7f:
		return ground
	case r >= 0x40:
		return dcsBody
	case r < 0x30:
		return dcsInter
	case at == dcsInter, r >= 0x3c && at == dcsParam:
		return dcsIgnore
	}
	return dcsParam
}
