package output

import (
	"encoding/json"
	"slices"

	"tether/ahp"
	"tether/record"
)

// What a log passes on to a log of the same terminal at another node, and what that does
// with it.

// Reset says where the text of a terminal begins, for a log at another node.
type Reset struct {
	Offset   int64       `json:"offset"`
	Commands int64       `json:"commands"` // commands that finished before the text
	Count    int         `json:"count"`    // commands that began before the text, as the owner counts
	Cols     int         `json:"cols"`
	Rows     int         `json:"rows"`
	Screen   *ahp.Screen `json:"screen,omitempty"`

	drawn *Drawn
}

// DecodeReset decodes and checks a Reset, and draws its screen.
func DecodeReset(data []byte) (r Reset, ok bool) {
	if json.Unmarshal(data, &r) != nil || r.Offset < 0 || r.Offset > MaxPosition || r.Commands < 0 || r.Commands > MaxCommandNumber || r.Count < 0 ||
		r.Cols < 1 || r.Cols > ahp.MaxSize || r.Rows < 1 || r.Rows > ahp.MaxSize {
		return r, false
	}
	if raw, err := json.Marshal(r.Screen); r.Screen != nil && (err != nil || ahp.DecodeScreen(raw) == nil) {
		return r, false
	}
	r.drawn = Draw(r.Screen)
	return r, true
}

// Reset makes the log continue at the owner's oldest text, because earlier text is not
// available. If told is set, subscribers see that the text was cleared, how much is
// missing, the new size, and the screen.
func (l *Log) Reset(r *Reset, told bool) {
	l.endStrip()
	if l.State.Lifecycle.Exited() { // not yet: the exit is applied again after the text
		l.State.Lifecycle = ahp.Lifecycle{Status: ahp.StatusRunning}
	}
	if l.content.end > l.content.base {
		l.Apply(ahp.TerminalCleared{}, nil)
		if missing := r.Offset - l.applied; missing > 0 && told {
			l.missing(missing)
		}
	}
	if cols, rows := int64(r.Cols), int64(r.Rows); !told {
		l.State.Cols, l.State.Rows = cols, rows
	} else if cols != l.State.Cols || rows != l.State.Rows {
		l.Apply(ahp.TerminalResized{Cols: cols, Rows: rows}, nil)
	}
	l.content.count = r.Count
	l.applied = r.Offset
	l.offsets.step(l.content.end, r.Offset, 0)
	l.marks.reset(r.Commands, l.content.end)
	if r.drawn == nil {
		l.show(record.NewBackdrop(r.Cols, r.Rows, l.content.end, 0))
		return
	}
	l.show(r.drawn.at(l.content.end + r.Screen.After))
	if told {
		l.to.Note(Note{Screen: r.drawn.said}.Action(""), l.content.end, true)
	}
}

// ResetAt returns where the recorded text begins, with the screen b there.
func (l *Log) ResetAt(b *Behind) Reset {
	start, old := l.content.oldest(), b.Show()
	r := Reset{Offset: l.offsets.at(start), Commands: l.marks.endedBefore(start), Count: l.content.count, Cols: old.Cols, Rows: old.Rows}
	if i := slices.IndexFunc(l.content.parts, func(p part) bool { return p.command != nil }); i >= 0 {
		r.Count = l.content.parts[i].command.n - 1
	}
	if old.Replay != nil || !old.Exact {
		r.Screen = &ahp.Screen{Cols: int64(old.Cols), Rows: int64(old.Rows), Data: string(old.Replay), After: max(b.Pos-start, 0), Truncated: !old.Exact}
	}
	return r
}

// Follow appends text of the owner that ends at an offset, as another log recorded it. It
// drops text that is here already. It returns the same as Place.
func (l *Log) Follow(end int64, t Text) (began, pos int64, ok bool) {
	began, pos = l.applied, l.content.end
	if ok = t.skip(began - (end - int64(t.Size()))); ok {
		l.Text(t)
		l.applied = end
		l.placed(pos, end)
	}
	return began, pos, ok
}

// FollowNote appends a note that another log has added, with its text, and that ends at
// an offset. It skips one with text that is here already.
func (l *Log) FollowNote(end int64, action []byte) error {
	var note struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(action, &note); err != nil {
		return err
	}
	t, err := Clean(note.Data)
	switch {
	case err != nil:
		return err
	case t.Size() > 0 && end <= l.applied:
		return nil
	case t.Size() > 0:
		l.backdrop.Missing(l.content.end)
		l.content.appendText(t.Quoted[1:len(t.Quoted)-1], t.found, false)
	}
	if end > l.applied {
		l.applied = end
		l.offsets.step(l.content.end, end, 0)
	}
	l.to.Note(action, l.content.end, t.Size() == 0)
	return nil
}
