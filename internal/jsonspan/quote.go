package jsonspan

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// blockLen is how many input bytes are converted between two looks at the output's
// capacity, in bytes.
const blockLen = 256

// maxEscape is the longest escape of one input byte, in bytes: \u001b.
const maxEscape = 6

// AppendQuote appends s as a JSON string, quotes included, and returns the extended
// buffer. The result equals that of encoding/json without HTML escaping: each byte that
// is not valid UTF-8 becomes \ufffd, and U+2028 and U+2029 are escaped. It allocates only
// to grow dst, for which it may reserve up to 1.6 KiB more than it needs.
func AppendQuote(dst, s []byte) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		end := min(i+blockLen, len(s))
		// A block may end up to 7 bytes late, and every store is 8 bytes wide.
		dst = slices.Grow(dst, maxEscape*(end-i+8)+8)
		dst, i = quoteBlock(dst, s, i, end)
	}
	return append(dst, '"')
}

// AppendQuoteString is [AppendQuote] for a string.
func AppendQuoteString(dst []byte, s string) []byte {
	return AppendQuote(dst, []byte(s)) // not copied: AppendQuote only reads it
}

// quoteBlock appends s[i:end], and the rest of a character that begins before end, to
// dst, which has room. It returns where it stopped in s.
//
// Every step stores a whole word and then advances by the bytes that count, which makes
// short runs between escapes cheap.
func quoteBlock(dst, s []byte, i, end int) ([]byte, int) {
	out, o := dst[:cap(dst)], len(dst)
	for i < end {
		if i+8 <= len(s) {
			w := load64(s, i)
			store64(out, o, w)
			m := stringMask(w) | w&highBits
			if m == 0 {
				i += 8
				o += 8
				continue
			}
			n := bits.TrailingZeros64(m) >> 3
			i += n
			o += n
		}
		c := s[i]
		if c >= utf8.RuneSelf {
			o, i = quoteHigh(out, o, s, i, end)
			continue
		}
		for more := true; more; more = i < end && s[i] < ' ' { // line ends come in pairs
			c = s[i]
			store64(out, o, escape[c].text)
			o += int(escape[c].n)
			i++
		}
	}
	return out[:o], i
}

// quoteHigh is quoteBlock for a run of characters that are not ASCII.
func quoteHigh(out []byte, o int, s []byte, i, end int) (int, int) {
	for i < end && s[i] >= utf8.RuneSelf {
		if i+8 <= len(s) {
			w := load64(s, i)
			// U+2028 and U+2029 take the long way.
			if n := shortRune(w); n != 0 && w&0xfeffff != 0xa880e2 {
				store64(out, o, w)
				i += n
				o += n
				continue
			}
		}
		n, ok := runeLen(s[i:])
		switch {
		case !ok:
			o += copy(out[o:], `\ufffd`)
		case n == 3 && s[i] == 0xe2 && s[i+1] == 0x80 && s[i+2]&^1 == 0xa8:
			o += copy(out[o:], `\u2028`)
			out[o-1] += s[i+2] & 1
		default:
			o += copy(out[o:], s[i:i+n])
		}
		i += n
	}
	return o, i
}

func store64(s []byte, i int, w uint64) { binary.LittleEndian.PutUint64(s[i:], w) }

// escape holds, for each ASCII character, how it is written inside a string: its n bytes
// of text in the order of memory.
var escape = func() (t [0x80]struct {
	text uint64
	n    uint8
}) {
	const digits = "0123456789abcdef"
	short := map[byte]byte{'"': '"', '\\': '\\', '\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}
	for i := range t {
		c := byte(i)
		text := []byte{c}
		if letter, ok := short[c]; ok {
			text = []byte{'\\', letter}
		} else if c < ' ' {
			text = []byte{'\\', 'u', '0', '0', digits[c>>4], digits[c&0xf]}
		}
		t[i].n = uint8(len(text))
		t[i].text = binary.LittleEndian.Uint64(append(text, make([]byte, 8)...))
	}
	return t
}()
