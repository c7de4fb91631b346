package jsonspan

import (
	"bytes"
	"math/bits"
	"unicode/utf8"
)

// Skip finds a place in s, the text of a valid string without its quotes: the first place
// between two characters with at least n decoded bytes in front of it, or the end. at is
// the place, and size is how many decoded bytes are in front of it. It panics if it meets
// an invalid escape.
func Skip(s []byte, n int) (at, size int) {
	for at < len(s) && size < n {
		if at+8 <= len(s) && size+8 <= n {
			w := load64(s, at)
			slash := w ^ lowBits*'\\'
			m := ((slash-lowBits)&^slash | w) & highBits
			if m == 0 {
				at += 8
				size += 8
				continue
			}
			k := bits.TrailingZeros64(m) >> 3
			at += k
			size += k
		}
		switch b := s[at]; {
		case b != '\\' && b < utf8.RuneSelf:
			at++
			size++
		case b != '\\':
			width, ok := runeLen(s[at:])
			at += width
			if !ok {
				width = len("\ufffd")
			}
			size += width
		default:
			r, width := unescapeRune(s[at:])
			if width == 0 {
				panic(errString)
			}
			at += width
			size += utf8.RuneLen(r)
		}
	}
	return at, size
}

// Tail returns a long end of s, the text of a valid string without its quotes, that
// begins with an escape and has at most n encoded bytes. It is never all of s. It returns
// nil if it finds none.
func Tail(s []byte, n int) []byte {
	for at := max(len(s)-n, 1); at < len(s); at++ {
		i := bytes.IndexByte(s[at:], '\\')
		if i < 0 {
			return nil
		}
		// Behind a backslash this one may be the second of a pair. A \ud may be the
		// second half of a character.
		if at += i; s[at-1] != '\\' && !(s[at+1] == 'u' && s[at+2]|0x20 == 'd') {
			return s[at:]
		}
	}
	return nil
}
