// Package qr makes QR codes (ISO/IEC 18004) of short texts, such as links, and shows them in a terminal. Codes have the lowest level of
// error correction, L: a screen has no scratches, and a smaller code fits into more terminals.
package qr

import (
	"errors"
	"math/bits"
)

// maxVersion bounds the size of a code: 57 by 57 modules, for 271 bytes.
const maxVersion = 10

// ErrTooLong is returned by Encode for a text that does not fit.
var ErrTooLong = errors.New("the text is too long for a QR code")

// blocks has, for each version at level L, the number of blocks and the number of error correction codewords in each block (table 9).
var blocks = [maxVersion + 1]struct{ count, check int }{1: {1, 7}, {1, 10}, {1, 15}, {1, 20}, {1, 26}, {2, 18}, {2, 20}, {2, 24}, {2, 30}, {4, 18}}

// Code is a QR code.
type Code struct {
	Size  int // modules on each side, without the quiet zone
	dark  []bool
	fixed []bool // the modules that hold no data: patterns, format and version
}

// Dark reports whether a module is dark. Modules outside the code are light.
func (c *Code) Dark(x, y int) bool {
	return x >= 0 && y >= 0 && x < c.Size && y < c.Size && c.dark[y*c.Size+x]
}

// Encode returns the smallest code for the bytes of text, or ErrTooLong.
func Encode(text string) (*Code, error) {
	for version := 1; version <= maxVersion; version++ {
		if data := payload(text, version); data != nil {
			c := newCode(version)
			c.place(interleave(data, version))
			return c, nil
		}
	}
	return nil, ErrTooLong
}

// codewords returns the number of codewords of a version, including those for error correction.
func codewords(version int) int {
	modules := (16*version+128)*version + 64
	if version >= 2 {
		n := version/7 + 2 // alignment patterns on each side
		modules -= (25*n-10)*n - 55
	}
	if version >= 7 {
		modules -= 36
	}
	return modules / 8
}

// payload returns the data codewords: byte mode, the length, the text, the terminator and padding. It returns nil if the version has no room
// for the text.
func payload(text string, version int) []byte {
	lengthBits := 8
	if version >= 10 {
		lengthBits = 16
	}
	room := codewords(version) - blocks[version].count*blocks[version].check
	if 4+lengthBits+8*len(text) > 8*room {
		return nil
	}
	var all []byte
	n := 0
	put := func(v, width int) {
		for i := width - 1; i >= 0; i-- {
			if n%8 == 0 {
				all = append(all, 0)
			}
			all[n/8] |= byte(v>>i&1) << (7 - n%8)
			n++
		}
	}
	put(4, 4)
	put(len(text), lengthBits)
	for i := range len(text) {
		put(int(text[i]), 8)
	}
	put(0, min(4, 8*room-n))
	for pad := byte(0xEC); len(all) < room; pad ^= 0xEC ^ 0x11 {
		all = append(all, pad)
	}
	return all
}

// interleave divides data into blocks, computes the error correction of each block, and returns the codewords of all blocks in turn: first
// the data, then the error correction.
func interleave(data []byte, version int) (out []byte) {
	b := blocks[version]
	short := len(data) / b.count // data of the first blocks; the last ones may have one more
	long := b.count - len(data)%b.count
	var parts, checks [][]byte
	for i := range b.count {
		n := short
		if i >= long {
			n++
		}
		parts, checks = append(parts, data[:n]), append(checks, remainder(data[:n], b.check))
		data = data[n:]
	}
	for i := range short + 1 {
		for _, p := range parts {
			if i < len(p) {
				out = append(out, p[i])
			}
		}
	}
	for i := range b.check {
		for _, c := range checks {
			out = append(out, c[i])
		}
	}
	return out
}

// times multiplies in GF(256) modulo x^8 + x^4 + x^3 + x^2 + 1.
func times(a, b byte) (product byte) {
	for i := 7; i >= 0; i-- {
		product = product<<1 ^ product>>7*0x1D
		product ^= b >> i & 1 * a
	}
	return product
}

// remainder returns the n codewords of Reed-Solomon error correction: the remainder of data divided by (x-1)(x-2)(x-4)….
func remainder(data []byte, n int) []byte {
	divisor := make([]byte, n) // without the leading 1
	divisor[n-1] = 1
	for root, i := byte(1), 0; i < n; i++ {
		for j := range n {
			divisor[j] = times(divisor[j], root)
			if j+1 < n {
				divisor[j] ^= divisor[j+1]
			}
		}
		root = times(root, 2)
	}
	rest := make([]byte, n)
	for _, b := range data {
		factor := b ^ rest[0]
		rest = append(rest[1:], 0)
		for i := range rest {
			rest[i] ^= times(divisor[i], factor)
		}
	}
	return rest
}

// newCode returns a code with everything but the data: the patterns, the format and the version.
func newCode(version int) *Code {
	n := 17 + 4*version
	c := &Code{Size: n, dark: make([]bool, n*n), fixed: make([]bool, n*n)}
	for i := range n {
		c.fix(6, i, i%2 == 0)
		c.fix(i, 6, i%2 == 0)
	}
	for _, at := range [][2]int{{3, 3}, {n - 4, 3}, {3, n - 4}} { // finders, with their light border
		for dy := -4; dy <= 4; dy++ {
			for dx := -4; dx <= 4; dx++ {
				ring := max(abs(dx), abs(dy))
				c.fix(at[0]+dx, at[1]+dy, ring != 2 && ring != 4)
			}
		}
	}
	centres := alignment(version)
	for i, y := range centres {
		for j, x := range centres {
			last := len(centres) - 1
			if i == 0 && j == 0 || i == 0 && j == last || i == last && j == 0 {
				continue // finders are there
			}
			for dy := -2; dy <= 2; dy++ {
				for dx := -2; dx <= 2; dx++ {
					c.fix(x+dx, y+dy, max(abs(dx), abs(dy)) != 1)
				}
			}
		}
	}
	c.drawFormat()
	if version >= 7 {
		info := version<<12 | check(version, 12, 0x1F25)
		for i := range 18 {
			c.fix(n-11+i%3, i/3, info>>i&1 == 1)
			c.fix(i/3, n-11+i%3, info>>i&1 == 1)
		}
	}
	return c
}

// alignment returns the coordinates of the centres of the alignment patterns; they are the same on both axes.
func alignment(version int) []int {
	if version == 1 {
		return nil
	}
	n := version/7 + 2
	step := (version*8 + n*3 + 5) / (n*4 - 4) * 2
	all := make([]int, n)
	all[0] = 6
	for i := 1; i < n; i++ {
		all[n-i] = 10 + 4*version - (i-1)*step
	}
	return all
}

func abs(n int) int { return max(n, -n) }

// check returns the BCH code for v. It has width bits.
func check(v, width, divisor int) int {
	rest := v << width
	for d := bits.Len(uint(divisor)); bits.Len(uint(rest)) >= d; {
		rest ^= divisor << (bits.Len(uint(rest)) - d)
	}
	return rest
}

// fix draws a module that holds no data. It ignores modules outside the code.
func (c *Code) fix(x, y int, dark bool) {
	if x >= 0 && y >= 0 && x < c.Size && y < c.Size {
		c.dark[y*c.Size+x], c.fixed[y*c.Size+x] = dark, true
	}
}

// drawFormat draws the format, which is the level and the mask, at its two places.
func (c *Code) drawFormat() {
	v := 1<<3 | mask
	v = (v<<10 | check(v, 10, 0x537)) ^ 0x5412
	n := c.Size
	for i := range 15 {
		dark := v>>i&1 == 1
		switch {
		case i < 6:
			c.fix(8, i, dark)
		case i < 8:
			c.fix(8, i+1, dark)
		case i == 8:
			c.fix(7, 8, dark)
		default:
			c.fix(14-i, 8, dark)
		}
		if i < 8 {
			c.fix(n-1-i, 8, dark)
		} else {
			c.fix(8, n-15+i, dark)
		}
	}
	c.fix(8, n-8, true)
}

// mask is the number of the mask pattern for data: pattern 0 inverts every other module, like a chessboard. The standard has eight patterns,
// of which an encoder chooses the one that is easiest to read. The data here is nearly random and easy to read with each of them.
const mask = 0

// place draws the codewords in columns of two modules, from the right, alternately upwards and downwards.
func (c *Code) place(data []byte) {
	n, i := c.Size, 0
	for right := n - 1; right > 0; right -= 2 {
		if right == 6 {
			right = 5 // column 6 is the timing pattern
		}
		for step := range n {
			y := step
			if (right+1)&2 == 0 {
				y = n - 1 - step
			}
			for x := right; x > right-2; x-- {
				if c.fixed[y*n+x] {
					continue
				}
				dark := i < 8*len(data) && data[i/8]>>(7-i%8)&1 == 1
				c.dark[y*n+x] = dark != ((x+y)%2 == 0)
				i++
			}
		}
	}
}
