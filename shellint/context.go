package shellint

import "bytes"

// context is the state in which plain output leaves a terminal, as far as it matters for
// joining: whether the bytes that come next would go on with something unfinished. Marks
// are not part of that output.
type context struct {
	state state
	need  uint8 // continuation bytes that the last character lacks
}

type state uint8

const (
	ground    state = iota
	inEscape        // after ESC and perhaps controls
	inInter         // after ESC and an intermediate byte
	inControl       // in a CSI sequence
	inOSC
	inString // in DCS, SOS, PM or APC
)

func (c context) unfinished() bool { return c.state != ground || c.need > 0 }

// afterC1 returns the context after the C1 control with the second byte b.
func afterC1(b byte) context {
	switch b {
	case csi1:
		return context{state: inControl}
	case osc1:
		return context{state: inOSC}
	case dcs1, sos1, pm1, apc1:
		return context{state: inString}
	}
	return context{}
}

// advance moves c over plain output without C1 controls, whose last ESC is at index last
// (negative: none).
func (c *context) advance(p []byte, last int) {
	if last >= 0 {
		*c = context{state: inEscape}
		p = p[last+1:]
	}
	c.need = utf8Need(c.need, p)
	for i := 0; i < len(p) && c.state != ground; i++ {
		if c.state == inOSC || c.state == inString {
			c.inString(p[i:])
			return
		}
		c.state = c.state.after(p[i])
	}
}

// inString looks for the end of a string, which is neither ESC nor C1 here.
func (c *context) inString(p []byte) {
	if bytes.IndexByte(p, can) >= 0 || bytes.IndexByte(p, sub) >= 0 || c.state == inOSC && bytes.IndexByte(p, bel) >= 0 {
		c.state = ground
	}
}

// after returns the state after a byte that is neither ESC nor part of a C1 control, as
// xterm.js defines it. s is not a string.
func (s state) after(b byte) state {
	switch {
	case inert(b):
		return s
	case b < 0x20 || b >= 0x80:
		return ground
	case s == inControl:
		if b < 0x40 {
			return inControl
		}
		return ground
	case b < 0x30:
		return inInter
	case s == inEscape:
		return afterEscape(b)
	}
	return ground
}

func afterEscape(b byte) state {
	switch b {
	case '[':
		return inControl
	case ']':
		return inOSC
	case 'P', 'X', '^', '_':
		return inString
	}
	return ground
}

// utf8Need is the number of continuation bytes that the character at the end of p lacks,
// if need were lacking before p. It judges by lead bytes alone, as lenient decoders do.
func utf8Need(need uint8, p []byte) uint8 {
	for k := 1; k <= 3; k++ {
		if k > len(p) {
			return need - min(need, uint8(len(p)))
		}
		b := p[len(p)-k]
		if b >= 0x80 && b < 0xc0 {
			continue
		}
		return leadNeed(b) - min(leadNeed(b), uint8(k-1))
	}
	return 0
}

// leadNeed returns the number of continuation bytes that follow the byte b.
func leadNeed(b byte) uint8 {
	switch {
	case b < 0xc2 || b > 0xf4:
		return 0
	case b < 0xe0:
		return 1
	case b < 0xf0:
		return 2
	}
	return 3
}
