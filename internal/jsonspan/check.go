package jsonspan

import (
	"bytes"
	"math/bits"
	"unicode/utf8"
)

// CheckString validates quoted, a JSON string with its quotes and without
// space around it, without decoding it. n is the length in bytes of what
// [AppendUnquote] would append. Invalid UTF-8 is accepted here too: who passes
// the string on as it is has to check for that (utf8.Valid).
//
// osc reports that a terminal may see an OSC begin in the text, or after it: it
// holds an ESC with "]" behind it, where C0 controls and DEL may stand between,
// or U+009D. It may say so of text without one.
func CheckString(quoted []byte) (n int, osc bool, err error) {
	s, err := body(quoted)
	if err != nil {
		return 0, false, err
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
				osc = osc || mayBeginOSC(s[i:])
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
				return 0, false, errString
			}
			i += size
			n += utf8.RuneLen(r)
			osc = osc || r == 0x9d || r == 0x1b && mayBeginOSC(s[i:])
		case c >= utf8.RuneSelf:
			size, decoded := checkHigh(s[i:])
			i += size
			n += decoded
		case c == '"' || c < ' ':
			return 0, false, errString
		default:
			i++
			n++
		}
	}
	return n, osc || bytes.Contains(s, []byte("\u009d")), nil
}

// mayBeginOSC reports whether s, the escaped text behind an ESC, may complete
// the introducer of an OSC.
func mayBeginOSC(s []byte) bool {
	if len(s) < 2 {
		return len(s) == 0 || s[0] == ']' || s[0] == 0x7f
	}
	return s[0] == ']' || s[0] == 0x7f || s[0] == '\\' && s[1] != '\\'
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
