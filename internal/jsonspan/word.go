package jsonspan

import (
	"encoding/binary"
	"unicode/utf8"
)

// Strings are scanned eight bytes at a time: terminal output is full of short runs
// between escapes, for which a call into a vectorised search costs more than it saves.
// The masks below have the top bit of a byte set where that byte matches. Because the
// subtraction borrows, only the lowest match is exact, so callers use trailing zeros and
// look again after it.
const (
	lowBits  = 0x0101010101010101
	highBits = 0x8080808080808080
)

// textESC is the escape of ESC, which terminal output is full of, in the order of memory;
// wordESC masks the bytes of a word that it takes.
const (
	textESC = '\\' | 'u'<<8 | '0'<<16 | '0'<<24 | '1'<<32 | 'b'<<40
	wordESC = 1<<48 - 1
)

func load64(s []byte, i int) uint64 { return binary.LittleEndian.Uint64(s[i:]) }

// stringMask marks quotes, backslashes and control characters.
func stringMask(w uint64) uint64 {
	quote := w ^ lowBits*'"'
	slash := w ^ lowBits*'\\'
	return ((w-lowBits*' ')&^w | (quote-lowBits)&^quote | (slash-lowBits)&^slash) & highBits
}

// escapeLen returns the length of the escape at the start of s, or 0 if there is no
// complete and valid one.
func escapeLen(s []byte) int {
	if len(s) < 2 {
		return 0
	}
	if unescape[s[1]] != 0 {
		return 2
	}
	if s[1] == 'u' && hex4(s) >= 0 {
		return 6
	}
	return 0
}

// hex4 returns the value of the \uXXXX at the start of s, or -1 if there is none.
func hex4(s []byte) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	a, b, c, d := unhex[s[2]], unhex[s[3]], unhex[s[4]], unhex[s[5]]
	if (a | b | c | d) > 0x0f {
		return -1
	}
	return rune(a)<<12 | rune(b)<<8 | rune(c)<<4 | rune(d)
}

// shortRune returns the length of the UTF-8 sequence at the start of w if it is a valid
// one of two or three bytes, all that terminals commonly show, and otherwise 0. It is
// small enough to be inlined.
func shortRune(w uint64) int {
	if w&0xc0c0f0 == 0x8080e0 {
		if r := w&0x0f<<12 | w>>2&0xfc0; r >= 0x800 && r&0xf800 != 0xd800 {
			return 3
		}
		return 0
	}
	if w&0xc0e0 == 0x80c0 && w&0x1e != 0 {
		return 2
	}
	return 0
}

// runeLen returns the length of the UTF-8 sequence at the start of s, which holds at
// least one byte, and false (with length 1) if it is not valid.
func runeLen(s []byte) (n int, ok bool) {
	r, n := utf8.DecodeRune(s)
	return n, r != utf8.RuneError || n > 1
}

// unescape maps the letter after a backslash to the byte it stands for; 0 for letters
// that are no escape by themselves.
var unescape = [256]byte{
	'"': '"', '\\': '\\', '/': '/',
	'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// unhex maps a hexadecimal digit to its value; 0xff for everything else.
var unhex = func() (t [256]byte) {
	for i := range t {
		t[i] = 0xff
	}
	for i := range byte(10) {
		t['0'+i] = i
	}
	for i := range byte(6) {
		t['a'+i], t['A'+i] = 10+i, 10+i
	}
	return t
}()
