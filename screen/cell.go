package screen

// cell is one place of the grid. Its fields have the layout of xterm.js, which tests
// compare with.
type cell struct {
	ch  uint32 // the character, or the number of a cluster; with its width
	fg  uint32 // colour and flags
	bg  uint32 // colour and flags
	ext uint32 // number of an extra; 0: none
}

// Parts of cell.ch.
const (
	codeMask   = 1<<21 - 1
	clustered  = 1 << 21 // the code is the number of a cluster
	content    = codeMask | clustered
	widthShift = 22 // 0 in the second half of a wide character
	null       = 1 << widthShift
)

// Parts of cell.fg and cell.bg: a colour is a mode and a value.
const (
	palette16  = 1 << 24
	palette256 = 2 << 24
	rgb        = 3 << 24
	colourMode = 3 << 24
	colourMask = 1<<26 - 1

	inverse       = 1 << 26 // of fg
	bold          = 1 << 27
	underline     = 1 << 28
	blink         = 1 << 29
	invisible     = 1 << 30
	strikethrough = 1 << 31

	italic    = 1 << 26 // of bg
	dim       = 1 << 27
	hasExtra  = 1 << 28 // of a pen alone: its extra counts
	protected = 1 << 29
	overline  = 1 << 30
)

func (c *cell) width() int { return int(c.ch >> widthShift) }

func (c *cell) empty() bool { return c.ch&content == 0 }

// blank is an erased cell with a background.
func blank(bg uint32) cell { return cell{ch: null, bg: bg} }

// extra holds attributes that few cells have: a kind and colour of underline, and a
// hyperlink.
type extra struct {
	style  uint8  // 0 none, 1 single, 2 double, 3 curly, 4 dotted, 5 dashed
	colour uint32 // 0: the text's colour
	link   uint32 // number of a link; 0: none
}

// attrs holds the attributes with which the next character is drawn.
type attrs struct {
	fg, bg uint32
	ext    extra
}

// tables hold contents that do not fit into a cell. Each is bounded, see Screen.tidy.
type tables struct {
	clusters []string // characters, each with its combining characters
	extras   []extra  // the first means none
	links    []string // "parameters;URI", the first means none

	clusterOf map[string]uint32
	extraOf   map[extra]uint32
	linkOf    map[string]uint32
	wait      int // calls of tidy until it looks again for unused entries
}

// Bounds of the tables: the number of entries of each table, and sizes in bytes.
const (
	maxEntries   = 4096
	maxCluster   = 4 + maxCombining
	maxCombining = 16 // bytes that combine with one character
	maxLink      = 2 << 10
	maxLinks     = 512
)

func (t *tables) cluster(text string) (uint32, bool) {
	if n, ok := t.clusterOf[text]; ok {
		return n, true
	}
	if len(t.clusters) >= maxEntries {
		return 0, false
	}
	if t.clusterOf == nil {
		t.clusterOf = map[string]uint32{}
	}
	n := uint32(len(t.clusters))
	t.clusters = append(t.clusters, text)
	t.clusterOf[text] = n
	return n, true
}

func (t *tables) extra(e extra) uint32 {
	if n, ok := t.extraOf[e]; ok {
		return n
	}
	if t.extraOf == nil {
		t.extraOf, t.extras = map[extra]uint32{}, append(t.extras[:0], extra{})
	}
	if len(t.extras) >= maxEntries {
		return 0
	}
	n := uint32(len(t.extras))
	t.extras = append(t.extras, e)
	t.extraOf[e] = n
	return n
}

func (t *tables) link(text string) uint32 {
	if n, ok := t.linkOf[text]; ok {
		return n
	}
	if t.linkOf == nil {
		t.linkOf, t.links = map[string]uint32{}, append(t.links[:0], "")
	}
	if len(text) > maxLink || len(t.links) >= maxLinks {
		return 0
	}
	n := uint32(len(t.links))
	t.links = append(t.links, text)
	t.linkOf[text] = n
	return n
}

// tidy drops entries of the tables that no cell uses any more, when they are full.
func (s *Screen) tidy() {
	t := &s.tables
	if t.wait--; t.wait > 0 || len(t.clusters) < maxEntries && len(t.extras) < maxEntries && len(t.links) < maxLinks {
		return
	}
	if cells := s.rows * s.cols; cells > s.effort.left {
		return // further ones are not shown
	} else {
		s.effort.left -= cells
		s.effort.done += cells
	}
	old := *t
	s.tables = tables{wait: maxEntries} // where all are used, it is not tried each time
	renew := func(c *cell) {
		if c.ch&clustered != 0 {
			n, _ := s.tables.cluster(old.clusters[c.ch&codeMask])
			c.ch = c.ch&^codeMask | n
		}
		if c.ext != 0 {
			c.ext = s.tables.extra(s.renewExtra(&old, old.extras[c.ext]))
		}
	}
	for _, g := range []*grid{&s.main, &s.alt} {
		for i := range g.lines {
			for j := range g.lines[i].cells {
				renew(&g.lines[i].cells[j])
			}
		}
	}
	s.pen.ext = s.renewExtra(&old, s.pen.ext)
	s.dip()
}

func (s *Screen) renewExtra(old *tables, e extra) extra {
	if e.link != 0 {
		e.link = s.tables.link(old.links[e.link])
	}
	return e
}

// dip computes the attributes of new cells from the pen.
func (s *Screen) dip() {
	s.ink = cell{fg: s.pen.fg, bg: s.pen.bg &^ hasExtra}
	if s.pen.bg&hasExtra != 0 {
		s.ink.ext = s.tables.extra(s.pen.ext)
	}
}
