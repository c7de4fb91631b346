package terminals

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
// the host's lock.
func (b *Book) ApplyFeed(uri, node string, epoch int64, items []byte) error {
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
	var dropped *Terminal
	defer func() { dropped.Settle() }()
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(items) > 0 {
		t, m := b.mirror(uri)
		if m == nil || m.Node != node || m.epoch != epoch {
			return ErrNotOwner
		}
		kind, end, data, rest, _ := nextItem(items)
		items = rest
		var err error
		switch kind {
		case itemReset:
			b.resetMirror(t, &resets[0])
			resets = resets[1:]
		case itemText:
			if err = b.mirrorText(t, end, data); t.Out.Pending() {
				dropped = t
			}
		case itemNote:
			err = t.Out.FollowNote(end, data)
			t.Added()
		case itemAction:
			err = b.mirrorAction(t, data)
		case itemState:
			err = b.mirrorState(t, m, data)
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errFeed, err)
		}
	}
	return nil
}

// resetMirror makes a mirror continue at the owner's oldest text, because earlier
// text is not available. If the mirror has text, its subscribers see it cleared and are
// told how much is missing.
func (b *Book) resetMirror(t *Terminal, r *output.Reset) {
	if t.Out.End() > t.Out.Base() {
		b.Resyncs++
		t.Printed = ""
	}
	t.Out.Reset(r, t.subscribed())
	t.Added()
	t.placeGrants(&t.audience)
}

// mirrorText appends text that ends at an offset, without the part that the mirror
// has already.
func (b *Book) mirrorText(t *Terminal, end int64, data []byte) error {
	text, err := output.Clean(data)
	if err != nil {
		return err
	}
	t.placed(t.Out.Follow(end, text))
	return nil
}

// mirrorAction applies an action of the owner. It skips one that changes nothing,
// because a new owner repeats some.
func (b *Book) mirrorAction(t *Terminal, raw []byte) error {
	a, err := ahp.DecodeAction(raw)
	if err == nil {
		err = ahp.ValidateAction(a)
	}
	if err != nil {
		return err
	}
	s := t.State
	known := true
	switch a := a.(type) {
	case ahp.TerminalCommandExecuted:
		_, known = t.Out.Command(a.CommandID)
	case ahp.TerminalCommandFinished:
		c, ok := t.Out.Command(a.CommandID)
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
		b.Apply(t, Printable(a), nil)
	}
	return nil
}

// mirrorState sets a mirror's state to its owner's, marks it as fed, and wakes
// readers that wait for its text.
func (b *Book) mirrorState(t *Terminal, m *Mirror, data []byte) error {
	var s feedState
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	if len(s.Title) > ahp.MaxTitle || len(s.Cwd) > ahp.MaxCwd || s.Cols < 0 || s.Cols > ahp.MaxSize || s.Rows < 0 || s.Rows > ahp.MaxSize {
		return errFeed
	}
	b.update(t, ahp.TerminalState{Title: ahp.CleanTitle(s.Title), Cwd: s.Cwd, Cols: s.Cols, Rows: s.Rows})
	if s.Detection && !t.State.SupportsCommandDetection {
		b.Apply(t, ahp.TerminalCommandDetectionAvailable{}, nil)
	}
	if s.Lifecycle.Exited() && !t.Out.ToldExit() {
		t.State.Lifecycle = ahp.Lifecycle{Status: ahp.StatusRunning}
		b.Apply(t, t.Timed(ahp.TerminalExited{ExitCode: s.Lifecycle.ExitCode, Meta: ahp.AddTime(nil, ahp.ExitedKey, s.Exited)}), nil)
	}
	m.Fed = true
	t.placeGrants(&t.audience)
	m.fillDone()
	t.Moved.Raise()
	t.touch(inRows)
	return nil
}
