package jsonspan

import (
	"bytes"
	"math/bits"
	"unicode/utf8"
)

// Check is the result of [CheckString].
type Check struct {
	// Size is the number of bytes that [AppendUnquote] would append.
	Size int
	// UTF8 reports that the string is valid UTF-8. Invalid UTF-8 is accepted, too: check
	// this before passing the string on unchanged.
	UTF8 bool
	// OSC reports that an OSC may begin in the text, or at its end: it has U+009D, or an
	// ESC with "]" behind it, where C0 controls and DEL may stand between, or it ends
	// before such a "]". It may be set for text without one.
	OSC bool
	// Rows reports that a terminal outside any sequence would show the text as styled
	// characters in rows: its only sequences are CSI with digits, colons and semicolons,
	// and m or K behind them, the last of which may be incomplete; it has no other C1
	// control, and neither SO nor SI. It may be unset for such text.
	Rows bool
	// Styled reports that the text may hold a sequence that begins with ESC.
	Styled bool
}

// CheckString validates quoted, a JSON string with its quotes and without space around
// it, without decoding it.
func CheckString(quoted []byte) (Check, error) {
	s, err := body(quoted)
	if err != nil {
		return Check{}, err
	}
	c := Check{UTF8: true, Rows: true}
	n := 0
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
			n++
			if unescape[s[i+1]] != 0 {
				i += 2
				continue
			}
			if load64(s, i)&wordESC != textESC {
				n--
				break
			}
			i += len(`\u001b`)
			c.Styled = true
			k := 0
			if i+8 <= len(s) {
				k = shortStyle(load64(s, i))
			}
			if k == 0 {
				if k = style(s[i:]); k == 0 {
					c.sequence(s[i:])
				}
			}
			i += k
			n += k
		}
		if i == len(s) {
			break
		}
		switch b := s[i]; {
		case b == '\\':
			r, size := unescapeRune(s[i:])
			if size == 0 {
				return Check{}, errString
			}
			i += size
			n += utf8.RuneLen(r)
			c.control(r, s[i:])
		case b >= utf8.RuneSelf:
			size, decoded, valid := checkHigh(s[i:])
			i += size
			n += decoded
			c.UTF8 = c.UTF8 && valid
		case b == '"' || b < ' ':
			return Check{}, errString
		default:
			i++
			n++
		}
	}
	c.Size = n
	c.controls8(s)
	return c, nil
}

// control notes an escaped character r; s is the escaped text behind it.
func (c *Check) control(r rune, s []byte) {
	c.Styled = c.Styled || r == 0x1b
	switch {
	case r == 0x1b && style(s) == 0:
		c.sequence(s)
	case r == 0x0e, r == 0x0f, r >= 0x80 && r < 0xa0:
		c.Rows = false
		c.OSC = c.OSC || r == 0x9d
	}
}

// sequence notes an ESC that is followed by s, escaped text which does not begin with the
// whole rest of a style.
func (c *Check) sequence(s []byte) {
	c.OSC = c.OSC || mayBeginOSC(s)
	if len(s) > 0 && (s[0] != '[' || len(bytes.TrimLeft(s[1:], "0123456789:;")) > 0) {
		c.Rows = false
	}
}

// controls8 notes C1 controls that are in s as they are.
func (c *Check) controls8(s []byte) {
	for at := 0; ; at++ {
		i := bytes.IndexByte(s[at:], 0xc2)
		if i < 0 {
			return
		}
		if at += i; at+1 < len(s) && s[at+1]&0xe0 == 0x80 {
			c.Rows = false
			c.OSC = c.OSC || s[at+1] == 0x9d
		}
	}
}

// maxCut bounds the part of a sequence that Joins looks at on either side, in bytes.
const maxCut = 256

// Joins reports whether a and b together are [Check.Rows], given that each of them is.
// Both are without their quotes. It may be false for such text.
func Joins(a, b []byte) bool {
	rest := bytes.TrimRight(a[max(len(a)-maxCut, 0):], "0123456789:;")
	if len(rest) == 0 {
		return false
	}
	rest = bytes.TrimSuffix(rest, []byte("["))
	if !bytes.HasSuffix(rest, []byte(`\u001b`)) && !bytes.HasSuffix(rest, []byte(`\u001B`)) {
		return true
	}
	cut := a[max(len(a)-maxCut, 0):][len(rest):]
	return style(append(append(make([]byte, 0, 2*maxCut), cut...), b[:min(len(b), maxCut)]...)) > 0
}

// style returns the length of the rest of a sequence behind an ESC in escaped text, if
// the sequence is a style or erases in its row: see [Check]. Otherwise it returns 0.
func style(s []byte) int {
	if len(s) == 0 || s[0] != '[' {
		return 0
	}
	for i, b := range s[1:] {
		switch {
		case b >= '0' && b <= ';':
		case b == 'm', b == 'K':
			return i + 2
		default:
			return 0
		}
	}
	return 0
}

// shortStyle is style for the text in w, if the rest of the sequence has at most eight
// bytes; otherwise it returns 0. It is small enough to be inlined.
func shortStyle(w uint64) int {
	v := w >> 8
	// The first byte with another upper half ends the parameters.
	end := bits.TrailingZeros64((v^lowBits>>8*'0')&(lowBits>>8*0xf0)|1<<56) &^ 7
	if b := v >> end & 0xff; w&0xff != '[' || b != 'm' && b != 'K' || (v+lowBits>>8*4)&(lowBits>>8*0x40)&(1<<end-1) != 0 {
		return 0
	}
	return end>>3 + 2
}

// mayBeginOSC reports whether s, the escaped text behind an ESC, may complete the
// introducer of an OSC.
func mayBeginOSC(s []byte) bool {
	if len(s) < 2 {
		return len(s) == 0 || s[0] == ']' || s[0] == 0x7f
	}
	return s[0] == ']' || s[0] == 0x7f || s[0] == '\\' && s[1] != '\\'
}

// checkHigh returns the length of the run of non-ASCII characters at the start of s,
// encoded and decoded, and whether it is valid UTF-8.
func checkHigh(s []byte) (size, decoded int, valid bool) {
	valid = true
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
			n, valid = len("\ufffd"), false
		}
		decoded += n
	}
	return size, decoded, valid
}
