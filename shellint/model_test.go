package shellint_test

import "slices"

// model is the plainest definition of OSC 133 and 633 as a terminal sees them: a parser
// that looks at every byte of a whole stream and knows no shortcut. It follows xterm.js
// on UTF-8 input, except that it does not skip invalid bytes.
type model struct {
	raw   []byte
	state modelState
	start int    // of the open OSC
	text  []byte // its content
	found []modelMark
}

type modelState uint8

const (
	mGround modelState = iota
	mEscape
	mOther // a control sequence or string of another kind
	mOSC
)

type modelMark struct {
	start, end int
	payload    int  // length
	ends       bool // it counts; else it was cancelled or cut off
}

func modelMarks(raw []byte) []modelMark {
	m := &model{raw: raw}
	for i := 0; i < len(raw); i++ {
		if raw[i] == 0xc2 && i+1 < len(raw) && raw[i+1] >= 0x80 && raw[i+1] <= 0x9f {
			m.c1(i)
			i++
			continue
		}
		m.byte(i)
	}
	if m.state == mOSC {
		m.end(len(raw), false)
	}
	return m.found
}

func (m *model) c1(i int) {
	if m.state == mOSC {
		if m.raw[i+1] == 0x9c {
			m.end(i+2, true)
			return
		}
		m.end(i, false)
	}
	m.state = mGround
	if m.raw[i+1] == 0x9d {
		m.open(i)
	}
}

func (m *model) byte(i int) {
	b := m.raw[i]
	switch {
	case b == 0x1b:
		if m.state == mOSC && i+1 < len(m.raw) && m.raw[i+1] == '\\' {
			m.end(i+2, true)
		} else if m.state == mOSC && i+1 < len(m.raw) {
			m.end(i, true)
		} else if m.state == mOSC {
			m.end(i+1, false)
		}
		m.state = mEscape
	case b == 0x18 || b == 0x1a:
		if m.state == mOSC {
			m.end(i, false)
		}
		m.state = mGround
	case m.state == mOSC && b == 7:
		m.end(i+1, true)
	case m.state == mOSC && b >= 0x20:
		m.text = append(m.text, b)
	case m.state == mEscape && (b < 0x20 || b == 0x7f):
	case m.state == mEscape && b == ']':
		start := i
		if m.raw[i-1] == 0x1b {
			start = i - 1
		}
		m.open(start)
	case m.state == mEscape:
		m.state = mOther
	}
}

func (m *model) open(i int) { m.state, m.start, m.text = mOSC, i, m.text[:0] }

func (m *model) end(end int, counts bool) {
	m.state = mGround
	number, payload, _ := cut(m.text, ';')
	for len(number) > 1 && number[0] == '0' {
		number = number[1:]
	}
	if s := string(number); s == "133" || s == "633" {
		m.found = append(m.found, modelMark{m.start, end, len(payload), counts})
	}
}

func cut(b []byte, c byte) (before, after []byte, ok bool) {
	if i := slices.Index(b, c); i >= 0 {
		return b[:i], b[i+1:], true
	}
	return b, nil, false
}
