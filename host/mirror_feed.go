package host

import (
	"encoding/json"
	"errors"
	"fmt"

	"tether/ahp"
	"tether/host/output"
)

var errFeed = errors.New("host: what a node has sent of a terminal cannot be read")

// ApplyFeed applies the items of an owner's answer to its mirror. node and epoch are
// those of the request: if another node owns the terminal now, it returns ErrNotOwner and
// changes nothing more. If an item is malformed, it returns an error, and earlier items
// stay applied; the next request continues from there. It draws screens before it takes
// the host's mutex.
func (h *Host) ApplyFeed(uri, node string, epoch int64, items []byte) error {
	var resets []output.Reset
	for rest := items; len(rest) > 0; {
		kind, _, data, next, ok := nextItem(rest)
		if !ok {
			return errFeed
		}
		rest = next
		if kind != itemReset {
			continue
		}
		r, ok := output.DecodeReset(data)
		if !ok {
			return errFeed
		}
		resets = append(resets, r)
	}
	var dropped *terminal
	defer func() { dropped.settle() }()
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
			if err = h.mirrorTextLocked(t, end, data); t.out.Pending() {
				dropped = t
			}
		case itemNote:
			err = t.out.FollowNote(end, data)
			t.addedLocked()
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
func (h *Host) resetMirrorLocked(t *terminal, r *output.Reset) {
	if t.out.End() > t.out.Base() {
		h.nodes.resyncs++
		t.printed = ""
	}
	t.out.Reset(r, t.subscribed())
	t.addedLocked()
	t.placeGrantsLocked(&t.audience)
}

// mirrorTextLocked appends text that ends at an offset, without the part that the mirror
// has already.
func (h *Host) mirrorTextLocked(t *terminal, end int64, data []byte) error {
	text, err := output.Clean(data)
	if err != nil {
		return err
	}
	t.placedLocked(t.out.Follow(end, text))
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
	s := t.state
	known := true
	switch a := a.(type) {
	case ahp.TerminalCommandExecuted:
		_, known = t.out.Command(a.CommandID)
	case ahp.TerminalCommandFinished:
		c, ok := t.out.Command(a.CommandID)
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
	h.updateLocked(t, ahp.TerminalState{Title: ahp.CleanTitle(s.Title), Cwd: s.Cwd, Cols: s.Cols, Rows: s.Rows})
	if s.Detection && !t.state.SupportsCommandDetection {
		h.applyLocked(t, ahp.TerminalCommandDetectionAvailable{}, nil)
	}
	if s.Lifecycle.Exited() && !t.out.ToldExit() {
		t.state.Lifecycle = ahp.Lifecycle{Status: ahp.StatusRunning}
		h.applyLocked(t, t.timed(ahp.TerminalExited{ExitCode: s.Lifecycle.ExitCode, Meta: ahp.AddTime(nil, ahp.ExitedKey, s.Exited)}), nil)
	}
	m.fed = true
	t.placeGrantsLocked(&t.audience)
	m.fillDone()
	t.moved.Raise()
	t.touch(inRows)
	return nil
}
