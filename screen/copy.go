package screen

import (
	"maps"
	"slices"
)

// Clone returns an equal screen that shares no memory.
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
	c.parser.raw, c.text.lines, c.settings = slices.Clone(c.parser.raw), slices.Clone(c.text.lines), slices.Clone(c.settings)
	return &c
}

// Conceal removes all text that was printed, on both screens, the title, and settings,
// which may make a terminal answer. The screen's contents are in doubt then, but not the
// place of the cursor. It is for a screen without pending input.
func (s *Screen) Conceal() {
	for _, g := range []*grid{&s.main, &s.alt} {
		for i := range g.lines {
			g.lines[i] = line{}
		}
		g.doubt.rows = s.rows
	}
	s.tables, s.title, s.last, s.text = tables{}, "", 0, history{kept: s.text.kept}
	s.settings = nil
	s.pen.ext.link = 0
	s.extend()
	s.dip()
}
