package screen

// doubt marks the parts of a grid that a gap in the output has left unknown.
type doubt struct {
	rows   int  // number of rows, from the top, that may be wrong
	adrift int  // number of lines that must scroll by until the cursor's row is known; 0: the row is known
	saved  bool // the saved cursor state may be wrong
	blank  bool // the screen was erased, and nothing was taken away since
}

// Doubt records that output is missing before the next write, so the screen's contents
// are unknown. Rows count as known again when the screen was erased or they have come in
// by scrolling, and the cursor when it was sent to a place. The scrolling region is
// assumed unchanged.
func (s *Screen) Doubt() {
	s.main.doubt = doubt{rows: s.rows, adrift: s.rows, saved: true}
	s.alt.doubt = s.main.doubt
	s.astray = true
}

// Doubtful reports whether the screen may be partly wrong because of a [Screen.Doubt].
func (s *Screen) Doubtful() bool { return s.on.doubt.rows > 0 || s.on.doubt.adrift > 0 }

// arrive records that it is known from now on which screen is shown, but not the contents
// of either.
func (s *Screen) arrive() {
	s.Doubt()
	s.astray = false
}

// placed records that the cursor's place is known.
func (g *grid) placed() {
	if g.doubt.adrift == 0 {
		return
	}
	if g.doubt.adrift = 0; g.doubt.blank && g.filled() == 0 { // otherwise the program has drawn at an unknown place
		g.doubt.rows = 0
	}
}

// scrolled records that all rows have moved up by one.
func (g *grid) scrolled() {
	d := &g.doubt
	switch {
	case d.adrift > 1:
		d.adrift--
	case d.adrift == 1:
		d.adrift = 0
	case d.rows > 0:
		d.rows--
	}
}

// sunk records that rows have moved down within [from, to].
func (d *doubt) sunk(from, to int) {
	if from < d.rows {
		d.rows = max(d.rows, to+1)
	}
}

// erased records that all rows from index from on are blank.
func (d *doubt) erased(from int) {
	if d.adrift == 0 {
		d.rows = min(d.rows, from)
	}
	d.blank = from == 0
}

// resized records that the number of rows has changed.
func (d *doubt) resized(rows int) {
	if d.rows > 0 {
		d.rows = rows
	}
	if d.adrift > 0 {
		d.adrift = rows
	}
}
