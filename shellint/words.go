package shellint

import (
	"encoding/binary"
	"math/bits"
)

// These functions search eight bytes at a time, for distances so short that bytes.IndexByte is slower.

const (
	lows  = 0x0101010101010101
	highs = 0x8080808080808080
)

// zeroBytes returns a word in which the top bit of every zero byte of w is set. Top bits above the lowest zero byte may be set wrongly.
func zeroBytes(w uint64) uint64 { return (w - lows) &^ w & highs }

// payloadLen returns the number of bytes at the start of p before the first C0 control or C2.
func payloadLen(p []byte) int {
	i := 0
	for ; i+8 <= len(p); i += 8 {
		w := binary.LittleEndian.Uint64(p[i:])
		controls := (w - 0x20*lows) &^ w & highs
		if m := controls | zeroBytes(w^c1*lows); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for ; i < len(p); i++ {
		if p[i] < 0x20 || p[i] == c1 {
			break
		}
	}
	return i
}

// nextESC returns the index of the first ESC at or after i, or the length of p.
func nextESC(p []byte, i int) int {
	for ; i+8 <= len(p); i += 8 {
		if m := zeroBytes(binary.LittleEndian.Uint64(p[i:]) ^ esc*lows); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
	}
	for i < len(p) && p[i] != esc {
		i++
	}
	return i
}

// usualLen is the length of ESC ]133; and of ESC ]633;.
const usualLen = 6

// usualNumber returns 133 or 633 if p begins with the usual spelling of such a mark's introducer, else 0.
func usualNumber(p []byte) int32 {
	const (
		mark133 = esc | ']'<<8 | '1'<<16 | '3'<<24 | '3'<<32 | ';'<<40
		mark633 = esc | ']'<<8 | '6'<<16 | '3'<<24 | '3'<<32 | ';'<<40
	)
	if len(p) < 8 {
		return 0
	}
	switch binary.LittleEndian.Uint64(p) & (1<<(8*usualLen) - 1) {
	case mark133:
		return 133
	case mark633:
		return 633
	}
	return 0
}
