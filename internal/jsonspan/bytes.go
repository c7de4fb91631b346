package jsonspan

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Pack returns texts for JSON, with what is not UTF-8 replaced, and by their index the
// bytes of those texts, for a second field; nil if all are UTF-8. It does not change
// texts.
func Pack(texts []string) (shown []string, bytes map[int][]byte) {
	shown = texts
	for i, text := range texts {
		if utf8.ValidString(text) {
			continue
		}
		if bytes == nil {
			shown, bytes = slices.Clone(texts), map[int][]byte{}
		}
		shown[i], bytes[i] = strings.ToValidUTF8(text, "\uFFFD"), []byte(text)
	}
	return shown, bytes
}

// PackOne is Pack for one text; bytes is nil if it is UTF-8.
func PackOne(text string) (shown string, bytes []byte) {
	all, packed := Pack([]string{text})
	return all[0], packed[0]
}

// Unpack undoes Pack, in shown. It returns false if there are bytes without a text.
func Unpack(shown []string, bytes map[int][]byte) bool {
	for i, b := range bytes {
		if i < 0 || i >= len(shown) {
			return false
		}
		shown[i] = string(b)
	}
	return true
}

// Words returns what Pack was given. It does not change shown.
func Words(shown []string, bytes map[int][]byte) []string {
	words := slices.Clone(shown)
	Unpack(words, bytes)
	return words
}

// Show returns text that is not UTF-8 as bash, zsh and ksh would read it, $'a\xe9', so
// that people see different bytes as different text. Other text stays as it is.
func Show(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	b := []byte("$'")
	for len(text) > 0 {
		r, n := utf8.DecodeRuneInString(text)
		switch {
		case r == '\'' || r == '\\':
			b = append(b, '\\', text[0])
		case r < ' ' || r == 0x7f || r == utf8.RuneError && n == 1:
			b = fmt.Appendf(b, `\x%02x`, text[0])
		default:
			b = append(b, text[:n]...)
		}
		text = text[n:]
	}
	return string(append(b, '\''))
}
