package redact

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

const (
	word  = 8                  // bytes that are read together, as one number
	block = 8 * word           // bytes whose flags fit into one number, one bit each
	ones  = 0x0101010101010101 // times a byte: a word of that byte
)

// nextEscape returns the index, from i on, of the next ESC that does not begin a harmless sequence, or the length of p.
//
// In coloured text there is an ESC every dozen bytes. A search that stops at each ESC and goes on behind its sequence handles them one
// after the other. nextEscape finds all ESCs of a block first and then judges each on its own, which is twice as fast.
func nextEscape(p []byte, i int) int {
	for {
		n := bytes.IndexByte(p[i:], esc)
		if n < 0 {
			return len(p)
		}
		i += n
		for i <= len(p)-block {
			found := escapes(p[i : i+block])
			if found == 0 {
				break // they are rare here
			}
			bad := block
			for ; found != 0; found &= found - 1 {
				bit := bits.TrailingZeros64(found)
				if at := bit%8*word + bit/8; !harmless(p[i+at:]) {
					bad = min(bad, at)
				}
			}
			if bad < block {
				return i + bad
			}
			i += block
		}
		if i < len(p) && p[i] == esc {
			if !harmless(p[i:]) {
				return i
			}
			i++
		}
	}
}

// escapes returns a bit for each ESC in a block: bit 8*i+k for byte i of word k, an order that costs nothing. A SUB directly behind an ESC
// may get a bit, too. It does not matter: that ESC is not harmless, and comes first.
func escapes(p []byte) (found uint64) {
	for ; len(p) >= word; p = p[word:] {
		x := binary.LittleEndian.Uint64(p) ^ esc*ones
		zero := (x - ones) &^ x & (0x80 * ones) // bit 7 of each byte that is 0
		found = found>>1 | zero
	}
	return found
}

// harmless reports whether p begins with a complete control sequence that the sanitizer passes with any parameters. Nearly all are
// harmless: colours and movements.
func harmless(p []byte) bool {
	if len(p) < 2 || p[0] != esc || p[1] != '[' {
		return false
	}
	for i := 2; i <= len(p)-word; i += word {
		// Parameters are 0x30 to 0x3f: the first byte with another upper half ends them.
		rest := (binary.LittleEndian.Uint64(p[i:i+word]) ^ 0x30*ones) & (0xf0 * ones)
		if rest == 0 {
			continue
		}
		return controls[prefixIndex(p[2])][p[i+bits.TrailingZeros64(rest)/8]]
	}
	return false
}
