package host

import (
	"tether/ahp"
	"tether/screen"
)

// An owner whose log has dropped output that the host lacks sends the screen after it. That is no text: it is in no content and counts in
// no position.

// drawn is a screen that an owner has sent.
type drawn struct {
	said   *ahp.Screen
	screen *screen.Screen
}

// newDrawn draws it, without any lock; nil for nil.
func newDrawn(s *ahp.Screen) *drawn {
	if s == nil {
		return nil
	}
	d := &drawn{s.At(0), screen.NewState(int(s.Cols), int(s.Rows))}
	d.screen.Write([]byte(s.Data))
	if s.Truncated {
		d.screen.Doubt()
	}
	return d
}

// drawLocked makes it the screen at the end of the text, for new and present viewers.
func (h *Host) drawLocked(t *terminal, d *drawn) {
	h.endStripLocked(t)
	t.oldest = oldest{cols: int(d.said.Cols), rows: int(d.said.Rows), pos: t.content.end, screen: d.screen, from: t.marks.end()}
	e := entry{seq: h.nextSeqLocked(), from: t.creator, pos: t.content.end, past: true}
	e.msg = appendNote(t.uri, e.seq, "", noteMeta{Screen: d.said})
	t.addLocked(e)
}
