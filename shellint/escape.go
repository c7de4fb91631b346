package shellint

import (
	"bytes"
	"unicode/utf8"
)

// hexDigit returns the value of a hexadecimal digit, or -1 for any other byte.
func hexDigit(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// hexByte returns the byte that the first two bytes of b spell in hexadecimal.
func hexByte(b []byte) (byte, bool) {
	if len(b) < 2 || hexDigit(b[0]) < 0 || hexDigit(b[1]) < 0 {
		return 0, false
	}
	return byte(hexDigit(b[0])<<4 | hexDigit(b[1])), true
}

// unescape undoes the escaping of OSC 633: \\ and \xHH, which is a byte, not a character.
// Broken escapes stay as they are. The result may be b itself.
func unescape(b []byte) []byte {
	at := bytes.IndexByte(b, '\\')
	if at < 0 {
		return b
	}
	out := append(make([]byte, 0, len(b)), b[:at]...)
	for i := at; i < len(b); i++ {
		if b[i] == '\\' && i+1 < len(b) {
			if b[i+1] == '\\' {
				i++
			} else if b[i+1] == 'x' {
				if c, ok := hexByte(b[i+2:]); ok {
					out = append(out, c)
					i += 3
					continue
				}
			}
		}
		out = append(out, b[i])
	}
	return out
}

// percentDecode undoes URL escaping to bytes. Broken escapes stay as they are. The result
// may be b itself.
func percentDecode(b []byte) []byte {
	at := bytes.IndexByte(b, '%')
	if at < 0 {
		return b
	}
	out := append(make([]byte, 0, len(b)), b[:at]...)
	for i := at; i < len(b); i++ {
		if b[i] == '%' {
			if c, ok := hexByte(b[i+1:]); ok {
				out = append(out, c)
				i += 2
				continue
			}
		}
		out = append(out, b[i])
	}
	return out
}

// shellWord undoes the quoting of printf %q, as bash and zsh write it, up to the first
// ";" that is not quoted.
func shellWord(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for len(b) > 0 && b[0] != ';' {
		switch {
		case b[0] == '\'':
			out, b = singleQuoted(out, b[1:])
		case b[0] == '"':
			out, b = doubleQuoted(out, b[1:])
		case b[0] == '$' && len(b) > 1 && b[1] == '\'':
			out, b = ansiQuoted(out, b[2:])
		case b[0] == '\\' && len(b) > 1:
			out, b = append(out, b[1]), b[2:]
		default:
			out, b = append(out, b[0]), b[1:]
		}
	}
	return out
}

func singleQuoted(out, b []byte) (_, rest []byte) {
	text, rest, _ := bytes.Cut(b, []byte{'\''})
	return append(out, text...), rest
}

func doubleQuoted(out, b []byte) (_, rest []byte) {
	for len(b) > 0 && b[0] != '"' {
		if b[0] == '\\' && len(b) > 1 && bytes.IndexByte([]byte("$`\"\\"), b[1]) >= 0 {
			b = b[1:]
		}
		out, b = append(out, b[0]), b[1:]
	}
	return out, b[min(1, len(b)):]
}

// ansiQuoted undoes $'…' after its opening quote.
func ansiQuoted(out, b []byte) (_, rest []byte) {
	for len(b) > 0 && b[0] != '\'' {
		if b[0] == '\\' && len(b) > 1 {
			out, b = ansiEscape(out, b[1:])
			continue
		}
		out, b = append(out, b[0]), b[1:]
	}
	return out, b[min(1, len(b)):]
}

// ansiSimple are the one-letter escapes of $'…'.
var ansiSimple = map[byte]byte{
	'a': '\a', 'b': '\b', 'e': esc, 'E': esc, 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v',
	'\\': '\\', '\'': '\'', '"': '"', '?': '?',
}

// ansiEscape undoes one escape of $'…' after its backslash; an unknown one stays
// unchanged.
func ansiEscape(out, b []byte) (_, rest []byte) {
	if c, ok := ansiSimple[b[0]]; ok {
		return append(out, c), b[1:]
	}
	switch b[0] {
	case '0', '1', '2', '3', '4', '5', '6', '7':
		v, n := digits(b, 8, 3)
		return append(out, byte(v)), b[n:]
	case 'x':
		if v, n := digits(b[1:], 16, 2); n > 0 {
			return append(out, byte(v)), b[1+n:]
		}
	case 'u':
		if v, n := digits(b[1:], 16, 4); n > 0 {
			return utf8.AppendRune(out, rune(v)), b[1+n:]
		}
	case 'U':
		if v, n := digits(b[1:], 16, 8); n > 0 {
			return utf8.AppendRune(out, rune(v)), b[1+n:]
		}
	case 'c':
		if len(b) > 1 {
			return append(out, b[1]&0x1f), b[2:]
		}
	}
	return append(out, '\\', b[0]), b[1:]
}

// digits reads at most limit digits of the base; n is the number of digits that it read.
func digits(b []byte, base, limit int) (v, n int) {
	for n < limit && n < len(b) {
		d := hexDigit(b[n])
		if d < 0 || d >= base {
			break
		}
		v, n = v*base+d, n+1
	}
	return v, n
}
