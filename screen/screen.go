package screen

// MaxHistory bounds the kept lines that have left the screen, in bytes of text; the
// oldest go first.
const MaxHistory = 1 << 20

// maxSide bounds both dimensions, in cells. Tether's terminals have the same bound.
const maxSide = 1000

// Screen is one terminal. Use [New] or [NewState].
type Screen struct {
	cols, rows int
	main, alt  grid
	on         *grid // the shown screen: main or alt
	astray     bool  // after a gap it is not known whether main or alt is shown
	tables     tables

	pen   attrs
	ink   cell // a cell without a character, with the pen's attributes
	modes modes
	sets  charsets
	title string

	showLinks bool // text has the targets of links, see ShowLinks

	settings   []setting
	keyboards  [2]keyboard // of the main and of the alternate screen
	by         int         // the mode that has shown the alternate screen: 47, 1047 or 1049
	cursorKept bool        // the main screen's cursor was saved
	blind      bool        // it only follows what is set, see Modes

	last uint32 // the cell content just printed, which REP repeats and marks combine with; 0: none

	parser parser
	effort effort
	text   history
}

// New returns an empty screen that keeps text that leaves it, see [Screen.History]. Sizes
// are brought into 1 to 1000.
func New(cols, rows int) *Screen {
	s := NewState(cols, rows)
	s.text.kept = true
	return s
}

// NewState returns an empty screen without a history. Sizes are brought into 1 to 1000.
func NewState(cols, rows int) *Screen {
	s := &Screen{cols: side(cols), rows: side(rows), effort: effort{left: effortSaved}}
	s.reset()
	return s
}

func side(n int) int { return min(max(n, 1), maxSide) }

// Reset brings the screen into its first state. It keeps memory for what comes, and
// ShowLinks.
func (s *Screen) Reset() {
	s.Settle()
	s.modes, s.title, s.effort = modes{}, "", effort{left: effortSaved}
	s.text = history{kept: s.text.kept, lines: s.text.lines[:0]}
	s.reset()
}

// reset carries out RIS.
func (s *Screen) reset() {
	s.tables = tables{}
	s.main.saved, s.alt.saved = saved{}, saved{}
	lines := s.main.lines
	s.main.begin(s.cols, s.rows)
	s.alt.begin(s.cols, s.rows)
	if s.main.lines = lines; len(lines) != s.rows {
		s.main.lines = make([]line, s.rows)
	}
	for i := range s.main.lines {
		s.main.lines[i].clear(0)
	}
	s.on, s.astray = &s.main, false
	s.pen, s.sets, s.last = attrs{}, charsets{}, 0
	s.settings, s.keyboards, s.by, s.cursorKept = nil, [2]keyboard{}, 0, false
	s.modes = modes{wrap: true, newline: s.modes.newline, blink: s.modes.blink, hidden: s.modes.hidden} // xterm.js keeps these
	s.dip()
}

// Cursor returns the cursor's column and row, counted from 0. When the last column was
// written, it returns that column.
func (s *Screen) Cursor() (col, row int) { return min(s.on.x, s.cols-1), s.on.y }

// WholeScreen reports whether the alternate screen is shown.
func (s *Screen) WholeScreen() bool { return s.on == &s.alt }

// Size returns the size in cells.
func (s *Screen) Size() (cols, rows int) { return s.cols, s.rows }

// Cost returns the approximate memory use of the screen, in bytes.
func (s *Screen) Cost() int {
	n := cap(s.text.lines) + cap(s.parser.raw) + 2<<10 + cap(s.settings)*(32+maxValue)
	for _, g := range []*grid{&s.main, &s.alt} {
		for i := range g.lines {
			n += 16*cap(g.lines[i].cells) + 40
		}
	}
	n += len(s.tables.clusters)*(maxCluster+64) + len(s.tables.extras)*64
	for _, l := range s.tables.links {
		n += len(l) + 64
	}
	return n
}
