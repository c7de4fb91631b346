package screen

import (
	"cmp"
	"strconv"
)

// MaxReplay bounds the result of [Screen.Replay], in bytes. It is enough for the largest
// screen if few of its cells differ in their attributes.
const MaxReplay = 2 << 20

// Replay returns bytes that bring a fresh terminal emulator of the same size into the
// screen's state: both screens, cursors, modes, and an incomplete sequence. It returns
// nil if they exceed [MaxReplay].
func (s *Screen) Replay() []byte {
	w := &replay{s: s}
	w.grids()
	w.modes()
	w.cursor()
	w.out = append(w.out, s.parser.open()...)
	if len(w.out) > MaxReplay {
		return nil
	}
	return w.out
}

// Open returns the incomplete input that [Screen.Pending] counts; of a long sequence only
// its beginning.
func (s *Screen) Open() []byte { return s.parser.open() }

// open returns the incomplete input: the bytes of an unfinished sequence or character.
func (k *parser) open() (p []byte) {
	if k.state != ground {
		p = append(p, k.raw...)
	}
	return append(p, k.utf8[:k.held]...)
}

// replay writes a screen as bytes.
type replay struct {
	s   *Screen
	out []byte
	pen attrs // the pen after the bytes so far
}

func (w *replay) str(text string) { w.out = append(w.out, text...) }

// csi writes a control sequence with parameters.
func (w *replay) csi(prefix string, final byte, params ...int) {
	w.str("\x1b[" + prefix)
	for i, p := range params {
		if i > 0 {
			w.out = append(w.out, ';')
		}
		w.out = strconv.AppendInt(w.out, int64(p), 10)
	}
	w.out = append(w.out, final)
}

// grids draws both screens and leaves the viewer on the one that is shown.
func (w *replay) grids() {
	s := w.s
	w.grid(&s.main)
	w.str(s.keyboards[0].set())
	switch {
	case s.on == &s.alt:
		w.style(attrs{})
		w.csi("?", 'h', 47)
		w.grid(&s.alt)
		w.str(s.keyboards[1].set())
	case s.alt.saved != saved{}, s.keyboards[1] != keyboard{}:
		w.style(attrs{})
		w.csi("?", 'h', 47)
		if s.alt.saved != (saved{}) {
			w.save(&s.alt.saved)
		}
		w.str(s.keyboards[1].set())
		w.csi("?", 'l', 47)
	}
}

// grid draws one screen with its own state.
func (w *replay) grid(g *grid) {
	s := w.s
	w.rows(g)
	if g.top != 0 || g.bottom != s.rows-1 {
		w.csi("", 'r', g.top+1, g.bottom+1)
	}
	w.tabs(g)
	if g.saved != (saved{}) {
		w.save(&g.saved)
	}
	if g != s.on && (g.x != 0 || g.y != 0) {
		w.csi("", 'H', g.y+1, min(g.x, s.cols-1)+1) // the hidden screen's cursor matters when the size changes
	}
}

// rows draws the cells. It prints a row that continues the row above by wrapping at the
// margin, so that the viewer marks it as wrapped. If the first row continues a row that
// has scrolled away, it draws a row above it and removes that again.
func (w *replay) rows(g *grid) {
	s := w.s
	up := 0
	if len(g.lines) > 1 && g.lines[0].wrapped {
		up = 1 // the first row is drawn as the second, and moved up
	}
	for y := range g.lines {
		l := &g.lines[y]
		if y == len(g.lines)-1 && up > 0 {
			w.moveUp()
			up = 0
		}
		if l.wrapped && (y > 0 || up > 0) && s.cols > 1 {
			w.behind(g, y, up)
		} else {
			if len(l.cells) == 0 && l.fill == 0 {
				continue
			}
			w.csi("", 'H', y+up+1, 1)
		}
		w.row(l, s.cols)
	}
	if up > 0 {
		w.moveUp()
	}
}

// moveUp deletes the first row.
func (w *replay) moveUp() {
	w.style(attrs{})
	w.csi("", 'H', 1, 1)
	w.csi("", 'M', 1)
}

// behind moves the viewer's cursor to the beginning of row y by wrapping at the end of
// the row above, which marks row y as wrapped.
func (w *replay) behind(g *grid, y, up int) {
	cols := w.s.cols
	x, c := cols-1, cell{ch: 'x' | null}
	if y > 0 {
		if c = g.lines[y-1].at(x); c.width() == 0 {
			x--
			c = g.lines[y-1].at(x)
		}
	}
	w.csi("", 'H', y+up, x+1)
	if c.empty() { // left blank by a wide character that did not fit; this one does not fit either
		w.style(w.s.attrsOf(c))
		w.str("世")
	} else {
		w.cell(c)
		w.style(attrs{})
		w.str(" ")
	}
	w.style(attrs{})
	w.str("\r\x1b[2X")
}

// row draws the cells of a row from its beginning on.
func (w *replay) row(l *line, cols int) {
	end := len(l.cells)
	for end > 0 && l.cells[end-1] == (cell{ch: null, bg: l.fill}) {
		end--
	}
	for x := 0; x < end; {
		c := l.cells[x]
		if c.empty() && c.width() == 1 && c == blank(c.bg&colourMask) {
			n := 1
			for x+n < end && l.cells[x+n] == c {
				n++
			}
			w.blanks(c, n, x+n < cols)
			x += n
			continue
		}
		w.cell(c)
		x += max(c.width(), 1)
		if r := rune(c.ch & codeMask); c.ch&clustered != 0 || uncertain(r) {
			w.csi("", 'G', min(x, cols-1)+1)
			if x >= cols {
				return
			}
		}
	}
	if l.fill != 0 && end < cols {
		w.style(attrs{bg: l.fill})
		w.csi("", 'K')
	}
}

// uncertain reports whether terminals disagree on a character's width.
func uncertain(r rune) bool {
	return r >= 0x1100 && (r < 0x2500 || r > 0x259f) && (r < 0x3041 || r > 0xd7a3)
}

// blanks writes n erased cells. on moves the cursor behind them.
func (w *replay) blanks(c cell, n int, on bool) {
	if c.bg != 0 {
		w.style(attrs{bg: c.bg})
		w.csi("", 'X', n)
	}
	if on {
		w.csi("", 'C', n)
	}
}

// cell prints a cell.
func (w *replay) cell(c cell) {
	w.style(w.s.attrsOf(c))
	if text := w.s.string(c.ch); text != "" {
		w.str(text)
		return
	}
	w.str(" ")
}

// attrsOf returns the attributes of a cell.
func (s *Screen) attrsOf(c cell) attrs {
	a := attrs{fg: c.fg, bg: c.bg}
	switch {
	case c.ext != 0:
		a.ext = s.tables.extras[c.ext]
		a.bg |= hasExtra
	case c.fg&underline != 0:
		a.ext.style = 1
		a.bg |= hasExtra
	}
	return a
}

// style sets the viewer's pen to a.
func (w *replay) style(a attrs) {
	if a == w.pen {
		return
	}
	if a.ext.link != w.pen.ext.link {
		w.str("\x1b]8;")
		if a.ext.link == 0 {
			w.str(";")
		} else {
			w.str(w.s.tables.links[a.ext.link])
		}
		w.str("\x1b\\")
	}
	const apart = protected | hasExtra
	had, want := w.pen, a
	had.ext.link, want.ext.link = 0, 0
	had.bg, want.bg = had.bg&^apart, want.bg&^apart
	if had != want || w.pen.bg&protected > a.bg&protected {
		w.sgr(a)
		w.pen.bg &^= protected
	}
	if a.bg&protected > w.pen.bg&protected {
		w.csi("", '"', 1)
		w.str("q")
	}
	w.pen = a
}

// sgr sets the viewer's pen to a without a's link and protection. It ends protection, as
// SGR 0 does in xterm.js.
func (w *replay) sgr(a attrs) {
	w.str("\x1b[0")
	for _, f := range [...]struct {
		on   bool
		text string
	}{
		{a.fg&bold != 0, ";1"}, {a.bg&dim != 0, ";2"}, {a.bg&italic != 0, ";3"}, {a.fg&blink != 0, ";5"}, {a.fg&inverse != 0, ";7"},
		{a.fg&invisible != 0, ";8"}, {a.fg&strikethrough != 0, ";9"}, {a.bg&overline != 0, ";53"},
	} {
		if f.on {
			w.str(f.text)
		}
	}
	if a.fg&underline != 0 {
		if w.str(";4"); a.ext.style > 1 {
			w.str(":" + string('0'+rune(a.ext.style)))
		}
	}
	w.colour(a.fg, 30)
	w.colour(a.bg, 40)
	if a.ext.colour == colourMask {
		w.str(";59")
	} else {
		w.colour(a.ext.colour, 50)
	}
	w.str("m")
}

// colour writes a colour of a pen, as parameters of SGR.
func (w *replay) colour(c uint32, base int) {
	num := func(n int) {
		w.out = append(w.out, ';')
		w.out = strconv.AppendInt(w.out, int64(n), 10)
	}
	switch c & colourMode {
	case palette16:
		n := int(c & 0xff)
		if n < 8 {
			num(base + n)
		} else {
			num(base + 60 + n&7)
		}
	case palette256:
		num(base + 8)
		num(5)
		num(int(c & 0xff))
	case rgb:
		num(base + 8)
		num(2)
		for shift := 16; shift >= 0; shift -= 8 {
			num(int(c >> shift & 0xff))
		}
	}
}

// tabs sets the tab stops if they differ from those of a fresh terminal.
func (w *replay) tabs(g *grid) {
	usual := true
	for i := 1; i < w.s.cols; i++ {
		usual = usual && g.tabs[i] == (i%8 == 0)
	}
	if usual {
		return
	}
	w.csi("", 'g', 3)
	for i := range w.s.cols {
		if g.tabs[i] {
			w.csi("", 'G', i+1)
			w.str("\x1bH")
		}
	}
}

// save makes the viewer save the cursor v.
func (w *replay) save(v *saved) {
	w.charset(v.charset)
	w.style(w.s.savedPen(v))
	w.csi("", 'H', v.y+1, min(v.x, w.s.cols-1)+1)
	w.str("\x1b7")
	w.charset(0)
}

// savedPen returns the pen of a saved cursor. A saved cursor records only whether the
// extra counts, so the extra is the current pen's.
func (s *Screen) savedPen(v *saved) attrs {
	a := attrs{fg: v.fg, bg: v.bg}
	if a.bg&hasExtra != 0 {
		a.ext = s.pen.ext
	}
	return a
}

func (w *replay) charset(set byte) {
	set = cmp.Or(set, 'B')
	w.str("\x1b(" + string(rune(set)))
}

// modes sets the modes that differ from those of a fresh terminal.
func (w *replay) modes() {
	s, m := w.s, &w.s.modes
	for i := range s.settings {
		w.str(s.settings[i].set())
	}
	for _, f := range m.flags() {
		if f.on {
			w.csi(f.prefix, 'h', f.mode)
		}
	}
	if m.hidden {
		w.csi("?", 'l', 25)
	}
	if m.shape > 0 {
		w.csi("", ' ', m.shape)
		w.str("q")
	}
	if s.title != "" {
		w.str("\x1b]2;" + s.title + "\x1b\\")
	}
	if !m.wrap {
		w.csi("?", 'l', 7)
	}
}

// foreign reports whether the used set differs from the set of the level, because a
// restored cursor brought it.
func (c *charsets) foreign() bool { return c.used != c.designated[c.level] }

// borrow makes a set the used one that came with a saved cursor, in the same way.
func (w *replay) borrow() {
	c, v := &w.s.sets, w.s.on.saved
	w.charset(c.used)
	w.str("\x1b7")
	w.charset(0)
	w.designate()
	w.str("\x1b8")
	w.style(w.s.savedPen(&v))
	w.csi("", 'H', v.y+1, min(v.x, w.s.cols-1)+1)
	w.str("\x1b7") // it has that set again, as the saved cursor had that it came with
}

// designate names the four sets and chooses one.
func (w *replay) designate() {
	for i, set := range w.s.sets.designated {
		if set != 0 {
			w.str("\x1b" + string(rune('('+i)) + string(rune(set)))
		}
	}
	if level := w.s.sets.level; level > 0 {
		w.str([...]string{"\x0f", "\x0e", "\x1bn", "\x1bo"}[level])
	}
}

// cursor places the cursor and sets the viewer's pen to the screen's. It prints the last
// character again for two reasons: the viewer then knows which character a combining
// character joins, and that the next character wraps if the last column is written.
func (w *replay) cursor() {
	s, g := w.s, w.s.on
	if s.sets.foreign() {
		w.borrow()
	}
	row := g.y
	if s.modes.origin {
		w.csi("?", 'h', 6)
		row -= g.top
	}
	x := max(g.x-1, 0)
	if g.lines[g.y].width(x) == 0 && x > 0 {
		x--
	}
	c, pen := g.lines[g.y].at(x), s.pen
	if pen.bg&hasExtra == 0 { // as after restoring a cursor; the extra no longer shows
		pen.ext.link, pen.ext.style = 0, 0
	}
	again := s.last != 0 && c.ch == s.last && sameInk(c, s.ink) && !s.sets.foreign() && s.plain(c)
	switch {
	case again:
		w.designate()
		w.csi("", 'H', row+1, x+1)
		if s.modes.insert { // the character inserts itself, so delete it first
			w.style(attrs{})
			w.csi("", 'P', max(c.width(), 1))
			w.csi("", 'h', 4)
		}
		w.style(pen)
		w.str(s.string(c.ch))
		return
	case g.x >= s.cols:
		w.csi("", 'H', row+1, x+1)
		w.cell(c)
	default:
		w.csi("", 'H', row+1, g.x+1)
	}
	if !s.sets.foreign() {
		w.designate()
	}
	if s.modes.insert {
		w.csi("", 'h', 4)
	}
	w.style(pen)
}

// plain reports whether the active set of characters leaves a cell's first character
// unchanged.
func (s *Screen) plain(c cell) bool {
	for _, r := range s.string(c.ch) {
		return s.sets.translate(r) == r
	}
	return true
}

func sameInk(a, b cell) bool { return a.fg == b.fg && a.bg == b.bg && a.ext == b.ext }
