package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"tether/ahp"
	"tether/host/channel"
)

var errFeed = errors.New("host: what a node has sent of a terminal cannot be read")

// drawnReset is a feedReset with its screen drawn. Drawing is slow, so it happens before
// the host's mutex is taken.
type drawnReset struct {
	feedReset
	drawn *drawn
}

// ApplyFeed applies the items of an owner's answer to its mirror. node and epoch are
// those of the request: if another node owns the terminal now, it returns ErrNotOwner and
// changes nothing more. If an item is malformed, it returns an error, and earlier items
// stay applied; the next request continues from there. It draws screens before it takes
// the host's mutex.
func (h *Host) ApplyFeed(uri, node string, epoch int64, items []byte) error {
	var resets []drawnReset
	for rest := items; len(rest) > 0; {
		kind, _, data, next, ok := nextItem(rest)
		if !ok {
			return errFeed
		}
		rest = next
		if kind != itemReset {
			continue
		}
		var r drawnReset
		if json.Unmarshal(data, &r.feedReset) != nil || r.Offset < 0 || r.Offset > maxPosition || r.Commands < 0 || r.Commands > maxCommandNumber || r.Count < 0 ||
			r.Cols < 1 || r.Cols > ahp.MaxSize || r.Rows < 1 || r.Rows > ahp.MaxSize {
			return errFeed
		}
		if raw, err := json.Marshal(r.Screen); r.Screen != nil && (err != nil || ahp.DecodeScreen(raw) == nil) {
			return errFeed
		}
		r.drawn = newDrawn(r.Screen)
		resets = append(resets, r)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(items) > 0 {
		t, m := h.mirrorLocked(uri)
		if m == nil || m.node != node || m.epoch != epoch {
			return ErrNotOwner
		}
		kind, end, data, rest, _ := nextItem(items)
		items = rest
		var err error
		switch kind {
		case itemReset:
			h.resetMirrorLocked(t, &resets[0])
			resets = resets[1:]
		case itemText:
			err = h.mirrorTextLocked(t, end, data)
		case itemNote:
			err = h.mirrorNoteLocked(t, end, data)
		case itemAction:
			err = h.mirrorActionLocked(t, data)
		case itemState:
			err = h.mirrorStateLocked(t, m, data)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errFeed, err)
		}
	}
	return nil
}

// resetMirrorLocked makes a mirror continue at the owner's oldest text, because earlier
// text is not available. If the mirror has text, its subscribers see it cleared and are
// told how much is missing.
func (h *Host) resetMirrorLocked(t *terminal, r *drawnReset) {
	h.endStripLocked(t)
	if t.state.Lifecycle.Exited() { // not yet: the exit is applied again after the text
		t.state.Lifecycle = ahp.Lifecycle{Status: ahp.StatusRunning}
	}
	if t.content.end > t.content.base {
		h.nodes.resyncs++
		h.applyLocked(t, ahp.TerminalCleared{}, nil)
		if missing := r.Offset - t.applied; missing > 0 && t.subscribed() {
			h.missingLocked(t, missing)
		}
	}
	if cols, rows := int64(r.Cols), int64(r.Rows); !t.subscribed() {
		t.state.Cols, t.state.Rows = cols, rows
	} else if cols != t.state.Cols || rows != t.state.Rows {
		h.applyLocked(t, ahp.TerminalResized{Cols: cols, Rows: rows}, nil)
	}
	t.content.count = r.Count
	t.applied = r.Offset
	t.offsets.step(t.content.end, r.Offset)
	t.marks.from = t.content.end
	t.marks.ended = r.Commands
	if len(t.marks.list) == 0 {
		t.marks.base = r.Commands
	} else {
		t.marks.add(mark{pos: t.content.end})
	}
	t.oldest = oldest{cols: r.Cols, rows: r.Rows, pos: t.content.end, from: t.marks.end()}
	if d := r.drawn; d != nil {
		t.oldest = oldest{cols: int(d.said.Cols), rows: int(d.said.Rows), pos: t.content.end + r.Screen.After, screen: d.screen, from: t.marks.end()}
		if t.subscribed() {
			h.noteScreenLocked(t, d.said, 0)
		}
	}
	t.placeGrantsLocked(&t.audience)
}

// mirrorTextLocked appends text that ends at an offset, without the part that the mirror
// has already.
func (h *Host) mirrorTextLocked(t *terminal, end int64, data []byte) error {
	quoted, found, err := cleanText(data)
	if err != nil {
		return err
	}
	start := end - int64(found.Size)
	overlap := t.applied - start
	if overlap >= int64(found.Size) {
		return nil
	}
	if overlap > 0 {
		quoted, found = dropText(quoted, int(overlap))
	}
	applied, before := t.applied, t.content.end
	h.textLocked(t, make([]byte, 0, len(quoted)+len(t.uri)+envelopeRoom), quoted, found, t.creator.party, nil)
	t.applied = end
	if t.audience.pending {
		t.passedLocked(applied, before)
	}
	t.placedLocked(before, end)
	return nil
}

// mirrorNoteLocked appends a line that the owner's node wrote itself, such as the note
// that output is missing. It skips a line that the mirror has already.
func (h *Host) mirrorNoteLocked(t *terminal, end int64, action []byte) error {
	var note struct {
		Data json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(action, &note); err != nil {
		return err
	}
	quoted, found, err := cleanText(note.Data)
	switch {
	case err != nil:
		return err
	case found.Size > 0 && end <= t.applied: // the mirror has it already
		return nil
	}
	from := t.content.end
	var e channel.Entry
	e.Seq = h.envelopes.Next()
	e.Msg = ahp.AppendEnvelope(nil, t.uri, e.Seq, nil, "", action)
	if found.Size == 0 {
		e.Past = t.content.base + 1
	} else {
		t.oldest.gap = from
		t.content.appendText(quoted[1:len(quoted)-1], found, false)
	}
	e.At = t.content.end
	if end > t.applied {
		t.applied = end
		t.offsets.step(t.content.end, end)
	}
	t.addLocked(e, nil)
	return nil
}

// mirrorActionLocked applies an action of the owner. It skips one that changes nothing,
// because a new owner repeats some.
func (h *Host) mirrorActionLocked(t *terminal, raw []byte) error {
	a, err := ahp.DecodeAction(raw)
	if err == nil {
		err = ahp.ValidateAction(a)
	}
	if err != nil {
		return err
	}
	s := &t.state
	known := true
	switch a := a.(type) {
	case ahp.TerminalCommandExecuted:
		_, known = t.commandLocked(a.CommandID)
	case ahp.TerminalCommandFinished:
		c, ok := t.commandLocked(a.CommandID)
		known = !ok || !c.Running
	case ahp.TerminalTitleChanged:
		known = a.Title == s.Title
	case ahp.TerminalCwdChanged:
		known = a.Cwd == s.Cwd
	case ahp.TerminalResized:
		known = a.Cols == s.Cols && a.Rows == s.Rows
	case ahp.TerminalCommandDetectionAvailable:
		known = s.SupportsCommandDetection
	case ahp.TerminalExited:
		known = s.Lifecycle.Exited()
	case ahp.TerminalCleared:
		known = false
	}
	if !known {
		h.applyLocked(t, printable(a), nil)
	}
	return nil
}

// mirrorStateLocked sets a mirror's state to its owner's, marks it as fed, and wakes
// readers that wait for its text.
func (h *Host) mirrorStateLocked(t *terminal, m *mirror, data []byte) error {
	var s feedState
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	if len(s.Title) > ahp.MaxTitle || len(s.Cwd) > ahp.MaxCwd || s.Cols < 0 || s.Cols > ahp.MaxSize || s.Rows < 0 || s.Rows > ahp.MaxSize {
		return errFeed
	}
	h.updateLocked(t, ahp.TerminalState{Title: cleanTitle(s.Title), Cwd: s.Cwd, Cols: s.Cols, Rows: s.Rows})
	if s.Detection && !t.state.SupportsCommandDetection {
		h.applyLocked(t, ahp.TerminalCommandDetectionAvailable{}, nil)
	}
	if s.Lifecycle.Exited() && !t.markedExitLocked() {
		t.state.Lifecycle = ahp.Lifecycle{Status: ahp.StatusRunning}
		h.applyLocked(t, t.timed(ahp.TerminalExited{ExitCode: s.Lifecycle.ExitCode, Meta: ahp.AddTime(nil, ahp.ExitedKey, s.Exited)}), nil)
	}
	m.fed = true
	t.placeGrantsLocked(&t.audience)
	m.fillDone()
	t.moved.Raise()
	h.rowChangedLocked(t)
	return nil
}

// markedExitLocked reports whether readers have been told of the exit.
func (t *terminal) markedExitLocked() bool {
	return slices.ContainsFunc(t.marks.list, func(x mark) bool { return x.exited })
}
