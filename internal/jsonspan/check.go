package jsonspan

import (
	"math/bits"
	"unicode/utf8"
)

// CheckString validates quoted, a JSON string with its quotes and without
// space around it, without decoding it. n is the length in bytes of what
// [AppendUnquote] would append. Invalid UTF-8 is accepted here too: who passes
// the string on as it is has to check for that (utf8.Valid).
func CheckString(quoted []byte) (n int, err error) {
	s, err := body(quoted)
	if err != nil {
		return 0, err
	}
	for i := 0; i < len(s); {
		if i+8 <= len(s) {
			w := load64(s, i)
			m := stringMask(w) | w&highBits
			if m == 0 {
				i += 8
				n += 8
				continue
			}
			skip := bits.TrailingZeros64(m) >> 3
			i += skip
			n += skip
		}
		for i+8 <= len(s) && s[i] == '\\' { // line ends come in pairs
			if unescape[s[i+1]] != 0 {
				i += 2
			} else if load64(s, i)&wordESC == textESC {
				i += len(`\u001b`)
			} else {
				break
			}
			n++
		}
		if i == len(s) {
			break
		}
		c := s[i]
		switch {
		case c == '\\':
			r, size := unescapeRune(s[i:])
			if size == 0 {
				return 0, errString
			}
			i += size
			n += utf8.RuneLen(r)
		case c >= utf8.RuneSelf:
			size, decoded := checkHigh(s[i:])
			i += size
			n += decoded
		case c == '"' || c < ' ':
			return 0, errString
		default:
			i++
			n++
		}
	}
	return n, nil
}

// checkHigh returns the length of the run of characters that are not ASCII at
// the start of s, as it is and decoded.
func checkHigh(s []byte) (size, decoded int) {
	for size < len(s) && s[size] >= utf8.RuneSelf {
		if size+8 <= len(s) {
			if n := shortRune(load64(s, size)); n != 0 {
				size += n
				decoded += n
				continue
			}
		}
		n, ok := runeLen(s[size:])
		size += n
		if !ok {
			n = len("\ufffd")
		}
		decoded += n
	}
	return size, decoded
}
