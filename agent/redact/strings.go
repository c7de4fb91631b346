package redact

// string takes bytes of a control string, from p[i] on, and returns the index behind
// them.
func (s *sanitizer) string(p []byte, i int, base int64) int {
	if s.escape {
		s.escape = false
		at := base + int64(i) - 1 // of the ESC
		if p[i] == '\\' {
			s.end(at, endST)
			s.state = ground
			return i + 1
		}
		s.end(at, endOther)
		s.state, s.held = afterESC, s.held[:0]
		return i
	}
	n := i
	for n < len(p) && !s.ends(p[n:]) {
		n++
	}
	s.content(p[i:n], base+int64(i))
	if i = n; i == len(p) {
		return i
	}
	at := base + int64(i)
	switch c := p[i]; c {
	case esc:
		s.escape = true
		return i + 1
	case bel, can, sub:
		s.end(at, endByte)
		s.state = ground
		return i + 1
	}
	if p[i+1] == 0x9c {
		s.end(at, endC1)
		s.state = ground
		return i + 2
	}
	s.end(at, endOther)
	s.state = ground
	return i
}

// ends reports whether a string may end at the start of rest.
func (s *sanitizer) ends(rest []byte) bool {
	switch rest[0] {
	case esc, can, sub:
		return true
	case bel:
		return s.kind == ']'
	case 0xc2:
		return len(rest) > 1 && rest[1] < 0xa0
	}
	return false
}

// content takes bytes of the string's payload.
func (s *sanitizer) content(p []byte, off int64) {
	if len(p) == 0 {
		return
	}
	switch s.state {
	case held:
		// The judgement depends on the bytes, not on their division into calls.
		if s.wait {
			n := min(len(p), maxString-len(s.held))
			s.held = append(s.held, p[:n]...)
			if s.early(); s.state != held {
				s.content(p[n:], off+int64(n))
			}
			return
		}
		for i, b := range p {
			s.held = append(s.held, b)
			if s.early(); s.wait || s.state != held {
				s.content(p[i+1:], off+int64(i)+1)
				return
			}
		}
	case image:
		if s.images -= int64(len(p)); s.images < 0 {
			s.cut = off + int64(len(p)) + s.images
			s.images = 0
			s.state = ending
			s.stop(off + int64(len(p)))
		}
	case ending:
		s.stop(off + int64(len(p)))
	}
}

// stopLen is how many bytes of an image are needed to end it: ESC \, an introducer, and
// two for its end.
const stopLen = 6

// stop ends an image at s.cut, if the payload up to end has room for that.
func (s *sanitizer) stop(end int64) {
	if end-s.cut < stopLen {
		return
	}
	s.add(s.cut, s.cut+2, Close)
	s.add(s.cut+2, s.cut+4, Open)
	s.state, s.fill = blanked, s.cut+4
}

// How a string ends.
type stringEnd uint8

const (
	endST    stringEnd = iota // ESC \
	endByte                   // BEL, CAN or SUB
	endC1                     // U+009C
	endOther                  // something else begins
)

// end ends the string whose payload ends at the offset at.
func (s *sanitizer) end(at int64, how stringEnd) {
	if s.state == held {
		s.state = blanked
		if s.allowed() {
			s.state = passed
		} else {
			s.blank(at)
		}
	}
	switch s.state {
	case nulled:
		to := at
		switch how {
		case endByte:
			to++
		case endC1:
			to += 2
		}
		s.add(s.fill, to, Null)
	case blanked:
		s.close(at, how)
	}
	s.done = max(s.done, at)
}

// close writes the end of a blanked string.
func (s *sanitizer) close(at int64, how stringEnd) {
	switch {
	case how == endST:
		s.add(s.fill, at, Blank)
	case how == endC1:
		s.add(s.fill, at, Blank)
		s.add(at, at+2, Close)
	case how == endByte && at > s.fill:
		s.add(s.fill, at-1, Blank)
		s.add(at-1, at+1, Close)
	case how == endByte:
		s.add(at, at+1, Cancel) // the bytes before it have left
	case at-2 >= s.fill:
		s.add(s.fill, at-2, Blank)
		s.add(at-2, at, Close)
	default:
		s.add(s.fill, at, Blank)
	}
}

// blank begins to blank the string. Its payload has arrived up to the offset end.
func (s *sanitizer) blank(end int64) {
	if end-s.payload < 2 {
		s.state, s.fill = nulled, s.payload
		if s.payload-s.intro == 1 {
			s.add(s.intro, s.payload, Cancel) // after the ESC
			return
		}
		s.add(s.intro, s.payload, Null)
		return
	}
	s.state, s.fill = blanked, s.payload
	s.add(s.intro, s.payload, Open)
}

// settle moves done up to the last offset whose output is known.
func (s *sanitizer) settle() {
	at := s.off // the end of the payload so far
	if s.escape {
		at--
	}
	switch s.state {
	case held:
		s.done = max(s.done, s.intro)
		return
	case ending:
		s.done = max(s.done, s.cut)
		return
	case blanked:
		if at-2 > s.fill {
			s.add(s.fill, at-2, Blank)
			s.fill = at - 2
		}
		s.done = max(s.done, s.fill)
		return
	case nulled:
		s.add(s.fill, at, Null)
		s.fill = at
	}
	s.done = s.off
}

// flush decides the held bytes: a string that is not judged yet is blanked.
func (s *sanitizer) flush() {
	if s.done == s.off {
		return
	}
	at := s.off
	if s.escape {
		at--
	}
	switch s.state {
	case held:
		s.blank(at)
	case ending:
		s.cut = at
	}
	switch s.state {
	case blanked:
		s.add(s.fill, at, Blank)
		s.fill = max(s.fill, at)
	case nulled:
		s.add(s.fill, at, Null)
		s.fill = max(s.fill, at)
	}
	s.done = s.off
}
