package screen

import (
	"maps"
	"slices"
)

// Clone returns a screen that is the same, of which nothing is shared.
func (s *Screen) Clone() *Screen {
	c := *s
	for _, g := range []*grid{&c.main, &c.alt} {
		g.lines, g.tabs = slices.Clone(g.lines), slices.Clone(g.tabs)
		for i := range g.lines {
			g.lines[i].cells = slices.Clone(g.lines[i].cells)
		}
	}
	c.on = &c.main
	if s.on == &s.alt {
		c.on = &c.alt
	}
	t := &c.tables
	t.clusters, t.extras, t.links = slices.Clone(t.clusters), slices.Clone(t.extras), slices.Clone(t.links)
	t.clusterOf, t.extraOf, t.linkOf = maps.Clone(t.clusterOf), maps.Clone(t.extraOf), maps.Clone(t.linkOf)
	c.parser.raw, c.text.lines = slices.Clone(c.parser.raw), slices.Clone(c.text.lines)
	return &c
}

// Conceal takes away all text that was printed, on both screens, and the title. What the screen shows is in doubt then, but not where the
// cursor is. It is for a screen of which nothing is pending.
func (s *Screen) Conceal() {
	for _, g := range []*grid{&s.main, &s.alt} {
		for i := range g.lines {
			g.lines[i] = line{}
		}
		g.doubt.rows = s.rows
	}
	s.tables, s.title, s.last, s.text = tables{}, "", 0, history{kept: s.text.kept}
	s.pen.ext.link = 0
	s.extend()
	s.dip()
}
