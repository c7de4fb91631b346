package history

import (
	"math/bits"

	"tether/internal/plain"
)

// A filter tells which sequences of four bytes are in the plain text of a frame, in
// lower case as to ASCII, so that a search expands only frames that may have its text. It
// begins with a byte of flags; the rest is a Bloom filter with one hash, whose length is
// a power of two.
const (
	flagOpen = 1 << iota // the text ends within a line

	leastFilter = 32      // bytes of a Bloom filter
	mostFilter  = 8 << 10 // bytes; with random numbers in each line, half of its bits are set
)

// filterer makes filters. The zero value is ready for use, by one goroutine.
type filterer struct {
	bulk  plain.Bulk
	lines []byte
	set   [mostFilter]byte
}

// of returns the filter of a text.
func (f *filterer) of(text []byte) []byte {
	f.set = [mostFilter]byte{}
	var hash uint32
	for _, c := range f.bulk.Text(text, nil) {
		if c == '\n' {
			hash = 0
			continue
		}
		hash = hash<<8 | uint32(lower(c))
		if hash > 0xffffff {
			at := slot(hash)
			f.set[at>>3] |= 1 << (at & 7)
		}
	}
	set := f.set[:]
	for len(set) > leastFilter && 3*population(set) <= 4*len(set) { // of half the length, at most a third of its bits is set
		half := len(set) / 2
		for i := range half {
			set[i] |= set[half+i]
		}
		set = set[:half]
	}
	flags := byte(0)
	if len(text) > 0 && text[len(text)-1] != '\n' {
		flags |= flagOpen
	}
	return append([]byte{flags}, set...)
}

func population(set []byte) (n int) {
	for _, b := range set {
		n += bits.OnesCount8(b)
	}
	return n
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// slot is the bit of the last four bytes.
func slot(hash uint32) uint32 { return hash * 2654435769 >> 16 & (mostFilter*8 - 1) }

// isOpen reports whether the frame's text ends within a line.
func isOpen(filter []byte) bool { return len(filter) > 0 && filter[0]&flagOpen != 0 }

// slots are the bits that a text sets.
func slots(text string) (all []uint32) {
	var hash uint32
	for i := range len(text) {
		if hash = hash<<8 | uint32(lower(text[i])); i >= 3 {
			all = append(all, slot(hash))
		}
	}
	return all
}

// mayHave reports whether the frame may have one of the texts, given by their slots.
func mayHave(filter []byte, texts [][]uint32) bool {
	size := len(filter) - 1
	if len(texts) == 0 || size < leastFilter || size > mostFilter || size&(size-1) != 0 || isOpen(filter) {
		return true
	}
	for _, text := range texts {
		all := true
		for _, at := range text {
			at &= uint32(size*8 - 1)
			all = all && filter[1+at>>3]&(1<<(at&7)) != 0
		}
		if all {
			return true
		}
	}
	return false
}
