package jsonspan

import (
	"errors"
	"math/bits"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

var errString = errors.New("jsonspan: not a valid JSON string")

// body returns the text between the quotes. Whether the last quote is escaped shows when
// the text is scanned.
func body(quoted []byte) ([]byte, error) {
	n := len(quoted)
	if n < 2 || quoted[0] != '"' || quoted[n-1] != '"' {
		return nil, errString
	}
	return quoted[1 : n-1], nil
}

// AppendUnquote appends the text of quoted, a JSON string with its quotes and without
// space around it, to dst and returns the extended buffer. Invalid UTF-8 and lone
// surrogates become U+FFFD. If quoted is not valid, dst is returned as it was with an
// error. It allocates only to grow dst, for which it may reserve up to 0.8 KiB more than
// it needs.
func AppendUnquote(dst, quoted []byte) ([]byte, error) {
	s, err := body(quoted)
	if err != nil {
		return dst, err
	}
	return AppendUnescape(dst, s)
}

// AppendUnescape is [AppendUnquote] for s without the quotes around it.
func AppendUnescape(dst, s []byte) ([]byte, error) {
	out := dst
	for i := 0; i < len(s); {
		end := min(i+blockLen, len(s))
		// One byte becomes at most three; otherwise as in AppendQuote.
		out = slices.Grow(out, 3*(end-i+8)+8)
		if out, i = unquoteBlock(out, s, i, end); i < 0 {
			return dst, errString
		}
	}
	return out, nil
}

// unquoteBlock appends the text of s[i:end], and of a character that begins before end,
// to dst, which has room. It returns where it stopped in s, or -1.
func unquoteBlock(dst, s []byte, i, end int) ([]byte, int) {
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
		for i+8 <= len(s) && i < end && s[i] == '\\' { // line ends come in pairs
			if c := unescape[s[i+1]]; c != 0 {
				out[o] = c
				i += 2
			} else if load64(s, i)&wordESC == textESC {
				out[o] = '\x1b'
				i += len(`\u001b`)
			} else {
				break
			}
			o++
		}
		if i >= end {
			break
		}
		c := s[i]
		switch {
		case c == '\\':
			r, n := unescapeRune(s[i:])
			if n == 0 {
				return dst, -1
			}
			if r < utf8.RuneSelf {
				out[o] = byte(r)
				o++
			} else {
				o += utf8.EncodeRune(out[o:], r)
			}
			i += n
		case c >= utf8.RuneSelf:
			o, i = unquoteHigh(out, o, s, i, end)
		case c == '"' || c < ' ':
			return dst, -1
		default:
			out[o] = c
			o++
			i++
		}
	}
	return out[:o], i
}

// unquoteHigh is unquoteBlock for a run of characters that are not ASCII.
func unquoteHigh(out []byte, o int, s []byte, i, end int) (int, int) {
	for i < end && s[i] >= utf8.RuneSelf {
		if i+8 <= len(s) {
			w := load64(s, i)
			if n := shortRune(w); n != 0 {
				store64(out, o, w)
				i += n
				o += n
				continue
			}
		}
		n, ok := runeLen(s[i:])
		if ok {
			o += copy(out[o:], s[i:i+n])
		} else {
			o += copy(out[o:], "\ufffd")
		}
		i += n
	}
	return o, i
}

// unescapeRune decodes the escape at the start of s, which begins with a backslash; n is
// its length, 0 if it is not valid. A surrogate pair is one escape, a lone surrogate is
// U+FFFD.
func unescapeRune(s []byte) (r rune, n int) {
	if len(s) < 2 {
		return 0, 0
	}
	if c := unescape[s[1]]; c != 0 {
		return rune(c), 2
	}
	r = hex4(s)
	if r < 0 {
		return 0, 0
	}
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if pair := utf16.DecodeRune(r, hex4(s[6:])); pair != utf8.RuneError {
		return pair, 12
	}
	return utf8.RuneError, 6
}
