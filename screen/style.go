package screen

// style carries out SGR with the parser's parameters.
func (s *Screen) style() {
	s.styleAll()
	s.dipStyle()
}

// dipStyle is dip after SGR: it first drops unused extras if the table is full.
func (s *Screen) dipStyle() {
	if len(s.tables.extras) >= maxEntries {
		s.tidy()
	}
	s.dip()
}

// styleAll applies all parameters of SGR to the pen.
func (s *Screen) styleAll() {
	k := &s.parser
	for i := 0; i < k.n; i++ {
		p := k.params[i]
		switch {
		case p == 38 || p == 48 || p == 58:
			i += s.colour(i)
		case p == 4 && k.past[i] > k.from[i]:
			s.underline(k.subs[k.from[i]])
		default:
			s.styleOne(p)
		}
	}
}

// styleFlags holds the flags of the pen that an SGR parameter sets (fg, bg) and clears
// (notFg, notBg).
var styleFlags = [30]struct{ fg, bg, notFg, notBg uint32 }{
	1: {fg: bold}, 2: {bg: dim}, 3: {bg: italic}, 5: {fg: blink}, 7: {fg: inverse}, 8: {fg: invisible}, 9: {fg: strikethrough},
	22: {notFg: bold, notBg: dim}, 23: {notBg: italic}, 25: {notFg: blink}, 27: {notFg: inverse}, 28: {notFg: invisible}, 29: {notFg: strikethrough},
}

// styleOne applies a parameter that needs no further parameters.
func (s *Screen) styleOne(p int) {
	switch {
	case p >= 30:
		s.styleColour(p)
	case p == 0:
		s.pen.fg, s.pen.bg = 0, 0
		s.pen.ext.style, s.pen.ext.colour = 0, 0
		s.extend()
	case p == 4:
		s.underline(1)
	case p == 21:
		s.underline(2)
	case p == 24:
		s.underline(0)
	default:
		f := &styleFlags[p]
		s.pen.fg = s.pen.fg&^f.notFg | f.fg
		s.pen.bg = s.pen.bg&^f.notBg | f.bg
	}
}

// styleColour is styleOne from 30 on.
func (s *Screen) styleColour(p int) {
	p16 := func(at *uint32, n int) { *at = *at&^colourMask | palette16 | uint32(n) }
	switch {
	case p <= 37:
		p16(&s.pen.fg, p-30)
	case p == 39:
		s.pen.fg &^= colourMask
	case p >= 40 && p <= 47:
		p16(&s.pen.bg, p-40)
	case p == 49:
		s.pen.bg &^= colourMask
	case p == 53:
		s.pen.bg |= overline
	case p == 55:
		s.pen.bg &^= overline
	case p == 59:
		s.pen.ext.colour = colourMask // no colour, as xterm.js represents it
		s.extend()
	case p >= 90 && p <= 97:
		p16(&s.pen.fg, p-90|8)
	case p >= 100 && p <= 107:
		p16(&s.pen.bg, p-100|8)
	}
}

func (s *Screen) underline(style int) {
	if style < 0 || style > 5 {
		style = 1
	}
	s.pen.ext.style = uint8(style)
	if s.pen.fg |= underline; style == 0 {
		s.pen.fg &^= underline
	}
	s.extend()
}

// extend records in the pen whether its extra counts.
func (s *Screen) extend() {
	if s.pen.bg |= hasExtra; s.pen.ext.style == 0 && s.pen.ext.link == 0 {
		s.pen.bg &^= hasExtra
	}
}

// colour applies the i-th parameter, which is 38, 48 or 58, with the values that follow
// it after semicolons or colons. It returns the number of further parameters that it
// consumed.
func (s *Screen) colour(i int) (advance int) {
	k := &s.parser
	got := [6]int{0, 0, -1, 0, 0, 0} // 38, mode, nothing, and up to three values
	space := 0
	for {
		got[advance+space] = k.params[i+advance]
		if from, past := int(k.from[i+advance]), int(k.past[i+advance]); past > from {
			for j := from; j < past && j-from+advance+1+space < len(got); j++ {
				if got[1] == 5 {
					space = 1
				}
				if at := advance + j - from + 1 + space; at < len(got) {
					got[at] = k.subs[j]
				}
			}
			break
		}
		if got[1] == 5 && advance+space >= 2 || got[1] == 2 && advance+space >= 5 {
			break
		}
		if got[1] != 0 {
			space = 1
		}
		if advance++; advance+i >= k.n || advance+space >= len(got) {
			break
		}
	}
	for j := 2; j < len(got); j++ {
		got[j] = max(got[j], 0)
	}
	at := &s.pen.fg
	switch got[0] {
	case 48:
		at = &s.pen.bg
	case 58:
		at = &s.pen.ext.colour
	}
	switch got[1] {
	case 2:
		*at = *at&^colourMask | rgb | uint32(got[3]&255)<<16 | uint32(got[4]&255)<<8 | uint32(got[5]&255)
	case 5:
		*at = *at&^colourMask | palette256 | uint32(got[3]&255)
	}
	return advance
}
