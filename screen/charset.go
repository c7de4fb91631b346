package screen

// charsets are the four sets of characters that a program may choose from, by the byte
// that designates them; 0 is US.
type charsets struct {
	designated [4]byte
	level      int
	used       byte // the set of the level, unless a restored cursor brought another set
}

func (c *charsets) shift(level int) { c.level, c.used = level, c.designated[level] }

func (c *charsets) designate(n int, set byte) {
	if set != '0' && set != 'A' {
		set = 0
	}
	c.designated[n] = set
	if c.level == n {
		c.used = set
	}
}

// translate returns the character that r stands for in the used set.
func (c *charsets) translate(r rune) rune {
	switch {
	case c.used == '0' && r >= 0x60 && int(r-0x60) < len(graphics):
		return graphics[r-0x60]
	case c.used == 'A' && r == '#':
		return '£'
	}
	return r
}
