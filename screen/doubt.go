package screen

// Doubt says that it is not known what the screen shows: output is missing before what is written next. Rows count as known again when
// they were erased as a whole or have come in by scrolling.
func (s *Screen) Doubt() {
	s.main.doubt = s.rows
	if s.on == &s.alt {
		s.alt.doubt = s.rows
	}
}

// Doubtful reports whether some of what is shown may be wrong because of a [Screen.Doubt].
func (s *Screen) Doubtful() bool { return s.on.doubt > 0 }
