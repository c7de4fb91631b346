package screen

import "bytes"

// leapBytes is the shortest output that is worth a look whether it can be leapt over.
const leapBytes = 4 << 10

// Advance is Write for a screen that nobody looks at meanwhile. Over lines that scroll away, plain or coloured, it leaps: of those only
// what is left in the end is drawn. It costs about 0.3 ms per MB of them.
func (s *Screen) Advance(p []byte) {
	for len(p) > leapBytes && !s.text.kept {
		n := s.quiet(p)
		if n >= leapBytes && s.leap(p[:n]) {
			p = p[n:]
			continue
		}
		n = min(max(n, leapBytes), len(p))
		s.Write(p[:n])
		p = p[n:]
	}
	s.Write(p)
}

// quiet is the length of the beginning of p that only prints, in rows and colours: no other sequence is in it. s.scan has where its
// resets of colours end.
func (s *Screen) quiet(p []byte) int {
	s.scan = s.scan[:0]
	k := &s.parser
	if k.state != ground || k.held > 0 || s.on != &s.main || s.main.top > 0 || s.main.bottom < s.rows-1 || !s.modes.wrap || s.modes.insert || s.modes.origin {
		return 0
	}
	for at := 0; ; {
		i := bytes.IndexByte(p[at:], 0x1b)
		if i < 0 {
			return s.printed(p)
		}
		at += i
		n := quietSequence(p[at:])
		if n == 0 {
			return s.printed(p[:at])
		}
		if n <= 4 && p[at+n-1] == 'm' && (n == 3 || p[at+2] == '0') {
			s.scan = append(s.scan, at+n)
		}
		at += n
	}
}

// quietSequence is the length of the sequence at the beginning of p if it is whole and colours what follows or erases in its row.
func quietSequence(p []byte) int {
	if len(p) < 3 || p[1] != '[' {
		return 0
	}
	for i, c := range p[2:] {
		switch {
		case c >= '0' && c <= ';':
		case c == 'm', c == 'K':
			return i + 3
		default:
			return 0
		}
	}
	return 0
}

// printed is the length of p up to what shifts sets of characters, or may be an 8-bit control character.
func (s *Screen) printed(p []byte) int {
	n := len(p)
	for _, c := range [...]byte{0x0e, 0x0f} {
		if i := bytes.IndexByte(p[:n], c); i >= 0 {
			n = i
		}
	}
	for at := 0; ; at++ {
		i := bytes.IndexByte(p[at:n], 0xc2)
		if i < 0 {
			return n
		}
		if at += i; at+1 >= n || p[at+1] < 0xa0 {
			return at
		}
	}
}

// leap does p, which quiet has looked at, if enough of its rows scroll everything else away.
func (s *Screen) leap(p []byte) bool {
	tail := len(p)
	for range 2*s.rows - s.on.y + 1 { // down to the last row, and all of them away
		if tail = bytes.LastIndexByte(p[:tail], '\n'); tail <= 0 {
			return false
		}
	}
	for !s.modes.newline && p[tail-1] != '\r' {
		if tail = bytes.LastIndexByte(p[:tail], '\n'); tail <= 0 {
			return false
		}
	}
	at := 0
	for _, reset := range s.scan {
		if reset > tail {
			break
		}
		at = reset
	}
	if at > 0 {
		s.Write([]byte("\x1b[m"))
	}
	for at < tail { // colours since the last reset
		i := bytes.IndexByte(p[at:tail], 0x1b)
		if i < 0 {
			break
		}
		at += i
		n := quietSequence(p[at:])
		if p[at+n-1] == 'm' {
			s.Write(p[at : at+n])
		}
		at += n
	}
	s.main.x, s.main.y, s.main.doubt = 0, s.rows-1, 0
	s.Write(p[tail:])
	return true
}
