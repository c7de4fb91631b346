package jsonspan

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Pack returns texts for JSON, with what is not UTF-8 replaced, and by their index the bytes of those texts, for a second field; nil if all are
// UTF-8. It does not change texts.
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
