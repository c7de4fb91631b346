package jsonspan

import "math/bits"

// A scanner walks over JSON text once. It validates and never decodes, except for keys,
// which its caller compares.
type scanner struct {
	data []byte
	pos  int // next byte to look at
	max  int // values that may be in data, at any depth; 0 = any number
	seen int // values so far
}

// peek returns the next byte, or 0 at the end: a NUL is not valid anywhere outside a
// string, so the two need not be told apart.
func (s *scanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *scanner) skipSpace() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) fail(what string) error {
	if s.pos >= len(s.data) {
		what = "unexpected end"
	}
	return &syntaxError{what, s.pos}
}

// end requires that nothing but space follows.
func (s *scanner) end() error {
	s.skipSpace()
	if s.pos < len(s.data) {
		return s.fail("text after the value")
	}
	return nil
}

// value skips one value; depth is the number of arrays and objects around it.
func (s *scanner) value(depth int) error {
	if s.seen++; s.seen > s.max && s.max > 0 {
		return ErrTooMany
	}
	switch c := s.peek(); {
	case c == '"':
		_, err := s.str()
		return err
	case c == '{':
		return s.members(depth+1, nil)
	case c == '[':
		return s.elements(depth + 1)
	case c == '-' || isDigit(c):
		return s.number()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	}
	return s.fail("expected a value")
}

// members walks an object from its opening brace to after the closing one and calls f,
// unless nil, for each member.
func (s *scanner) members(depth int, f func(key, value []byte) error) error {
	if depth > MaxDepth {
		return s.fail("nesting too deep")
	}
	s.pos++ // the brace
	s.skipSpace()
	if s.peek() == '}' {
		s.pos++
		return nil
	}
	for {
		if err := s.member(depth, f); err != nil {
			return err
		}
		more, err := s.separator('}')
		if !more {
			return err
		}
	}
}

// member walks `"key" : value`.
func (s *scanner) member(depth int, f func(key, value []byte) error) error {
	if s.peek() != '"' {
		return s.fail("expected a key")
	}
	keyAt := s.pos
	plain, err := s.str()
	if err != nil {
		return err
	}
	keyEnd := s.pos
	s.skipSpace()
	if s.peek() != ':' {
		return s.fail("expected a colon")
	}
	s.pos++
	s.skipSpace()
	valueAt := s.pos
	if err := s.value(depth); err != nil || f == nil {
		return err
	}
	key := s.data[keyAt+1 : keyEnd-1 : keyEnd-1]
	if !plain {
		if key, err = AppendUnquote(nil, s.data[keyAt:keyEnd]); err != nil {
			return err
		}
	}
	return f(key, s.data[valueAt:s.pos:s.pos])
}

// elements walks an array from its opening bracket to after the closing one.
func (s *scanner) elements(depth int) error {
	if depth > MaxDepth {
		return s.fail("nesting too deep")
	}
	s.pos++ // the bracket
	s.skipSpace()
	if s.peek() == ']' {
		s.pos++
		return nil
	}
	for {
		if err := s.value(depth); err != nil {
			return err
		}
		more, err := s.separator(']')
		if !more {
			return err
		}
	}
}

// separator consumes a comma, behind which more follows, or closing.
func (s *scanner) separator(closing byte) (more bool, err error) {
	s.skipSpace()
	switch s.peek() {
	case ',':
		s.pos++
		s.skipSpace()
		return true, nil
	case closing:
		s.pos++
		return false, nil
	}
	return false, s.fail("expected a comma or the end of the object or array")
}

func (s *scanner) literal(word string) error {
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		return s.fail("expected a value")
	}
	s.pos += len(word)
	return nil
}

// number skips a number (RFC 8259, section 6).
func (s *scanner) number() error {
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++ // no digit may follow; the caller judges the next byte
	} else if !s.digits() {
		return s.fail("expected a digit")
	}
	if s.peek() == '.' {
		s.pos++
		if !s.digits() {
			return s.fail("expected a digit")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		if !s.digits() {
			return s.fail("expected a digit")
		}
	}
	return nil
}

// digits skips a run of digits and reports whether there was one.
func (s *scanner) digits() bool {
	start := s.pos
	for isDigit(s.peek()) {
		s.pos++
	}
	return s.pos > start
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// str skips a string from its opening quote. plain reports that its text needs no
// decoding: no escape, and nothing that might be invalid UTF-8.
func (s *scanner) str() (plain bool, err error) {
	data, i := s.data, s.pos+1
	plain = true
	var seen uint64
	for {
		if i+8 <= len(data) {
			w := load64(data, i)
			m := stringMask(w)
			if m == 0 {
				seen |= w
				i += 8
				continue
			}
			seen |= w & (m&-m - 1) // bytes before the match
			i += bits.TrailingZeros64(m) >> 3
		}
		if s.pos = i; i >= len(data) {
			return false, s.fail("")
		}
		switch c := data[i]; {
		case c == '"':
			s.pos++
			return plain && seen&highBits == 0, nil
		case c == '\\':
			plain = false
			for i+8 <= len(data) && data[i] == '\\' { // line ends come in pairs
				if unescape[data[i+1]] != 0 {
					i += 2
				} else if load64(data, i)&wordESC == textESC {
					i += len(`\u001b`)
				} else {
					break
				}
			}
			if i > s.pos {
				continue
			}
			n := escapeLen(data[i:])
			if n == 0 {
				return false, s.fail("bad escape")
			}
			i += n
		case c < ' ':
			return false, s.fail("control character in a string")
		default: // near the end, where there is no whole word
			seen |= uint64(c)
			i++
		}
	}
}
