package checkout

import "encoding/binary"

// cursor reads the parts of a binary file.
type cursor struct {
	data []byte // what is left
	bad  bool   // the file ends too early, or is not as git writes it
}

// take returns the next n bytes; it sets bad if there are fewer.
func (c *cursor) take(n int) []byte {
	if n < 0 || n > len(c.data) {
		c.bad = true
		return nil
	}
	p := c.data[:n]
	c.data = c.data[n:]
	return p
}

// until returns the bytes before the next one like end, and skips that.
func (c *cursor) until(end byte) []byte {
	for i, one := range c.data {
		if one == end {
			p := c.take(i)
			c.take(1)
			return p
		}
	}
	c.bad = true
	return nil
}

func (c *cursor) uint32() uint32 {
	if p := c.take(4); p != nil {
		return binary.BigEndian.Uint32(p)
	}
	return 0
}

// number decodes a number as in the offsets of packs: each further byte adds one.
func (c *cursor) number() int {
	n := 0
	for i := 0; ; i++ {
		p := c.take(1)
		if c.bad || i > 4 {
			c.bad = true
			return 0
		}
		if i > 0 {
			n++
		}
		if n = n<<7 | int(p[0]&0x7f); p[0] < 0x80 {
			return n
		}
	}
}
