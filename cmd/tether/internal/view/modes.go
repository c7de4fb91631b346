package view

import (
	"bytes"
	"slices"
	"strconv"
)

// Modes is an io.Writer that tracks which private modes a program has changed on the person's terminal, so that they can be restored when
// the program's output no longer goes there. It understands CSI ? Pm h and CSI ? Pm l (DECSET and DECRST), and whether colours were left
// on. It keeps at most the numbers in restorable.
type Modes struct {
	changed  []int // modes of restorable that are not in their default state, in the order of their change
	coloured bool  // the last SGR sequence did not reset all colours and styles

	state  modeState
	params []byte
}

type modeState uint8

const (
	modeGround  modeState = iota
	modeEscape            // after ESC
	modeInter             // after ESC and intermediate bytes
	modeCSI               // after ESC [
	modePrivate           // after ESC [ ?
	modeOther             // in a control sequence that is not followed
	modeOSC               // in an OSC, to BEL or ESC
	modeString            // in a DCS, SOS, PM or APC, to ESC
)

// maxModeParams bounds the parameters of one sequence, in bytes; longer ones are not followed.
const maxModeParams = 64

// restorable are the modes that make a terminal hard to use if they stay changed, with their default state. The numbers are from xterm's
// ctlseqs.
var restorable = map[int]bool{
	1:    false, // application cursor keys
	7:    true,  // autowrap
	25:   true,  // cursor visible
	9:    false, // X10 mouse
	47:   false, // alternate screen
	1000: false, // mouse, and its variants
	1002: false,
	1003: false,
	1004: false, // focus events
	1005: false,
	1006: false,
	1015: false,
	1047: false, // alternate screen
	1049: false, // alternate screen with saved cursor
	2004: false, // bracketed paste
	2026: false, // synchronized output
}

// Write follows p. It never fails.
func (m *Modes) Write(p []byte) (int, error) {
	for i := 0; i < len(p); {
		if m.state == modeGround {
			n := bytes.IndexByte(p[i:], 0x1b)
			if n < 0 {
				break
			}
			i += n
		}
		m.step(p[i])
		i++
	}
	return len(p), nil
}

func (m *Modes) step(c byte) {
	switch {
	case c == 0x1b:
		m.state = modeEscape
	case c == 0x18 || c == 0x1a: // CAN, SUB
		m.state = modeGround
	case m.state == modeOSC && c == 0x07:
		m.state = modeGround
	case m.state == modeOSC || m.state == modeString || c < ' ': // controls work within a sequence
	case m.state == modeEscape || m.state == modeInter:
		m.escape(c)
	case m.state == modeCSI && c == '?' && len(m.params) == 0:
		m.state = modePrivate
	case c >= '@':
		m.end(c)
	case (c >= '0' && c <= '9' || c == ';' || c == ':') && len(m.params) < maxModeParams:
		m.params = append(m.params, c)
	default:
		m.state = modeOther
	}
}

// escape takes a byte after ESC and intermediate bytes.
func (m *Modes) escape(c byte) {
	first := m.state == modeEscape
	m.state = modeGround
	switch {
	case c < '0':
		m.state = modeInter
	case !first:
	case c == '[':
		m.state, m.params = modeCSI, m.params[:0]
	case c == ']':
		m.state = modeOSC
	case c == 'P' || c == 'X' || c == '^' || c == '_':
		m.state = modeString
	case c == 'c': // full reset
		m.changed, m.coloured = nil, false
	}
}

// end acts on the final byte of a sequence.
func (m *Modes) end(c byte) {
	if m.state == modeCSI && c == 'm' {
		m.coloured = len(bytes.Trim(m.params, "0;")) > 0
	}
	if m.state == modePrivate && (c == 'h' || c == 'l') {
		for number := range bytes.SplitSeq(m.params, []byte{';'}) {
			n, err := strconv.Atoi(string(number))
			if normal, known := restorable[n]; err == nil && known {
				m.set(n, (c == 'h') != normal)
			}
		}
	}
	m.state = modeGround
}

func (m *Modes) set(mode int, changed bool) {
	m.changed = slices.DeleteFunc(m.changed, func(n int) bool { return n == mode })
	if changed {
		m.changed = append(m.changed, mode)
	}
}

// InSequence reports whether an escape sequence has begun and not ended.
func (m *Modes) InSequence() bool { return m.state != modeGround }

// WholeScreen reports whether a program shows the alternate screen.
func (m *Modes) WholeScreen() bool {
	return slices.ContainsFunc(m.changed, func(n int) bool { return n == 47 || n == 1047 || n == 1049 })
}

// Restore returns the bytes that restore the terminal, the last change first. They cancel an unfinished sequence (CAN). m is then as new.
func (m *Modes) Restore() []byte {
	var out []byte
	if m.state != modeGround {
		out = append(out, 0x18)
	}
	for _, n := range slices.Backward(m.changed) {
		out = append(out, "\x1b[?"...)
		out = strconv.AppendInt(out, int64(n), 10)
		if restorable[n] {
			out = append(out, 'h')
		} else {
			out = append(out, 'l')
		}
	}
	if m.coloured {
		out = append(out, "\x1b[0m"...)
	}
	*m = Modes{}
	return out
}
