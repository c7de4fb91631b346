package screen

// Coloured returns the rows of the screen as [Screen.Text] does, each with its colours
// and styles as SGR sequences, which end with the row. It has no other sequence, no link
// and nothing that Text leaves out.
func (s *Screen) Coloured() []string {
	rows := make([]string, s.on.filled())
	for y := range rows {
		w := &replay{s: s}
		w.coloured(&s.on.lines[y])
		rows[y] = string(w.out)
	}
	return rows
}

// coloured writes the cells of a row up to the last cell that is not blank or whose
// attributes are visible although it is blank.
func (w *replay) coloured(l *line) {
	end := w.s.cols
	for end > 0 && bare(l.at(end-1)) {
		end--
	}
	for x := range end {
		c := l.at(x)
		if c.width() == 0 {
			continue
		}
		a := w.s.attrsOf(c)
		a.ext.link, a.bg = 0, a.bg&^protected
		w.style(a)
		n := len(w.out)
		for _, r := range w.s.string(c.ch) {
			if !Hidden(r) {
				w.str(string(r))
			}
		}
		if len(w.out) == n {
			w.str(" ")
		}
	}
	if w.pen != (attrs{}) {
		w.str("\x1b[0m")
	}
}

// bare reports whether nothing of a cell can be seen.
func bare(c cell) bool {
	return (c.empty() && c.width() > 0 || c.ch&content == ' ') && c.bg&(colourMask|overline) == 0 && c.fg&(inverse|underline|strikethrough) == 0
}
