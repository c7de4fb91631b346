package screen

// modes are the modes that a program has set. The zero value is the state of a fresh
// terminal, except for wrap.
type modes struct {
	insert, newline, origin, wrap, reverseWrap bool // CSI 4, 20, ? 6, 7, 45
	cursorKeys, keypad, focus, paste, hidden   bool // ? 1, 66, 1004, 2004; hidden is ? 25 reset
	blink                                      bool // ? 12
	mouse                                      int  // 9, 1000, 1002, 1003; 0: off
	mouseForm                                  int  // 1006, 1016; 0: the default encoding
	shape                                      int  // of the cursor, as in CSI Ps SP q; 0: the viewer's default
}

// setModes carries out CSI h and l.
func (s *Screen) setModes(on bool) {
	for i := range s.parser.n {
		switch s.parser.params[i] {
		case 4:
			s.modes.insert = on
		case 20:
			s.modes.newline = on
		default:
			s.setMode(ansiOn, s.parser.params[i], on)
		}
	}
}

// setPrivateModes carries out CSI ? h and l.
func (s *Screen) setPrivateModes(on bool) {
	for i := range s.parser.n {
		p := s.parser.params[i]
		if !on {
			s.forget(restored, p)
		}
		if flag := s.modes.flag(p); flag != nil {
			*flag = on
			continue
		}
		switch p {
		case 2:
			if on {
				s.sets.designated, s.sets.used = [4]byte{}, 0
			}
			s.setMode(privateOn, p, on)
		case 6:
			s.modes.origin = on
			s.goTo(0, 0)
		case 9, 1000, 1002, 1003:
			s.modes.mouse = 0
			if on {
				s.modes.mouse = p
			}
		case 1006, 1016:
			s.modes.mouseForm = 0
			if on {
				s.modes.mouseForm = p
			}
		case 25:
			s.modes.hidden = !on
		default:
			s.switchScreen(p, on)
		}
	}
}

// numbered is a mode that is off in a fresh terminal.
type numbered struct {
	on     bool
	prefix string
	mode   int
}

// flags returns the modes that are off in a fresh terminal, except for those that change
// how a Replay draws.
func (m *modes) flags() [9]numbered {
	return [...]numbered{
		{m.newline, "", 20}, {m.cursorKeys, "?", 1}, {m.reverseWrap, "?", 45}, {m.keypad, "?", 66}, {m.blink, "?", 12}, {m.focus, "?", 1004},
		{m.paste, "?", 2004}, {m.mouseForm > 0, "?", m.mouseForm}, {m.mouse > 0, "?", m.mouse},
	}
}

// flag returns the field of a private mode that is a plain flag, else nil.
func (m *modes) flag(p int) *bool {
	switch p {
	case 1:
		return &m.cursorKeys
	case 7:
		return &m.wrap
	case 12:
		return &m.blink
	case 45:
		return &m.reverseWrap
	case 66:
		return &m.keypad
	case 1004:
		return &m.focus
	case 2004:
		return &m.paste
	}
	return nil
}

// Mode reports whether a mode is set (1) or reset (2), as DECRQM answers. It is 0 for
// modes that a Screen does not know.
func (s *Screen) Mode(n int, private bool) int {
	on, m := false, &s.modes
	flag := m.flag(n)
	switch {
	case !private && n == 4:
		on = m.insert
	case !private && n == 20:
		on = m.newline
	case !private:
		return 0
	case flag != nil:
		on = *flag
	case n == 6:
		on = m.origin
	case n == 25:
		on = !m.hidden
	case n == 9 || n == 1000 || n == 1002 || n == 1003:
		on = m.mouse == n
	case n == 1006 || n == 1016:
		on = m.mouseForm == n
	case n == 47 || n == 1047 || n == 1049:
		on = s.WholeScreen()
	case n == 2026:
		on = s.setting(privateOn, n) != nil
	default:
		return 0
	}
	if on {
		return 1
	}
	return 2
}

// switchScreen carries out the private modes that switch between the screens or save the
// cursor.
func (s *Screen) switchScreen(p int, on bool) {
	switch p {
	case 47, 1047:
		s.alternate(p, on)
	case 1048:
		if on {
			s.save()
		} else {
			s.restore()
		}
	case 1049:
		if on {
			s.save()
		}
		s.alternate(p, on)
		if !on {
			s.restore()
		}
	default:
		s.setMode(privateOn, p, on)
	}
}

// alternate switches between the two screens, for the private mode by. The alternate
// screen begins blank, and its contents are dropped when it is left.
func (s *Screen) alternate(by int, on bool) {
	if s.astray {
		defer s.arrive()
	}
	if on == (s.on == &s.alt) || !s.afford(s.rows) {
		return
	}
	x, y := s.on.x, s.on.y
	s.by = by
	if on {
		s.alt.lines = make([]line, s.rows)
		for i := range s.alt.lines {
			s.alt.lines[i].fill = s.erased()
		}
		s.alt.doubt = doubt{}
		if s.main.doubt.adrift > 0 {
			s.alt.doubt = doubt{rows: s.rows, adrift: s.rows, blank: true}
		}
		s.on = &s.alt
	} else {
		s.alt.begin(s.cols, s.rows)
		s.on = &s.main
	}
	s.on.x, s.on.y = x, y
}

func (s *Screen) save() {
	s.on.saved = saved{s.on.x, s.on.y, s.pen.fg, s.pen.bg, s.sets.used}
	s.on.doubt.saved = s.on.doubt.adrift > 0
	s.cursorKept = s.cursorKept || s.on == &s.main
}

func (s *Screen) restore() {
	v := &s.on.saved
	s.on.x, s.on.y, s.pen.fg, s.pen.bg, s.sets.used = v.x, v.y, v.fg, v.bg, v.charset
	s.dip()
	s.restrict(s.cols - 1)
	if s.on.doubt.saved {
		s.on.doubt = doubt{rows: s.rows, adrift: s.rows, saved: true}
	}
}

// softReset carries out DECSTR.
func (s *Screen) softReset() {
	s.on.top, s.on.bottom = 0, s.rows-1
	m := &s.modes
	was := *m
	*m = modes{wrap: true, newline: m.newline, blink: m.blink, mouse: m.mouse, mouseForm: m.mouseForm}
	if s.blind { // terminals other than xterm.js keep these
		m.reverseWrap, m.focus, m.paste, m.shape = was.reverseWrap, was.focus, was.paste, was.shape
	}
	s.forget(region, 0)
	s.forget(charset, -1)
	s.pen, s.sets, s.on.saved = attrs{}, charsets{}, saved{}
	s.dip()
}
