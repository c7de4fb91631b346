package redact

import (
	"bytes"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// needlesOf returns texts such that every match of an expression contains at least one,
// in lower case; nil if there are none. Looking for them first costs little, and most
// text contains none.
func needlesOf(re *syntax.Regexp) (best []string) {
	switch re.Op {
	case syntax.OpLiteral:
		text := strings.ToLower(string(re.Rune))
		for i := range len(text) {
			if text[i] >= utf8.RuneSelf {
				return nil
			}
		}
		return []string{text}
	case syntax.OpCapture, syntax.OpPlus:
		return needlesOf(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return needlesOf(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if of := needlesOf(sub); shortest(of) > shortest(best) {
				best = of
			}
		}
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			of := needlesOf(sub)
			if of == nil {
				return nil
			}
			best = append(best, of...)
		}
	}
	return best
}

// shortest returns the length of the shortest needle, 0 if there is none.
func shortest(needles []string) (n int) {
	for i, s := range needles {
		if i == 0 || len(s) < n {
			n = len(s)
		}
	}
	return n
}

// small is w with ASCII capitals in lower case, in buf; ok is false if w has other bytes,
// some of which fold to ASCII letters.
func small(buf, w []byte) (_ []byte, ok bool) {
	buf = append(buf[:0], w...)
	for i, c := range buf {
		if c >= utf8.RuneSelf {
			return buf, false
		}
		if c >= 'A' && c <= 'Z' {
			buf[i] = c | 0x20
		}
	}
	return buf, true
}

// mayMatch reports whether one of the needles is in text, or there are none.
func (c *check) mayMatch(text []byte) bool {
	if c.needles == nil {
		return true
	}
	for _, needle := range c.needles {
		if bytes.Contains(text, []byte(needle)) {
			return true
		}
	}
	return false
}
