package term

// display is what the terminal's marks say of it: what the child has set, and
// the person by the size of a window. Guarded by the terminal's mutex.
type display struct {
	title string // "" before the first: then the terminal's name is
	cwd   string
	size  Size
	// sizing has one slot, taken by resize before the mutex, so that the last
	// mark is the pty's size.
	sizing chan struct{}
}

// resize changes the size of the pty and records it. The same size again
// does nothing.
func (t *Terminal) resize(s Size) error {
	if err := checkSize(s); err != nil {
		return err
	}
	t.display.sizing <- struct{}{}
	defer func() { <-t.display.sizing }()
	t.mu.Lock()
	same, over := t.display.size == s, t.ending.exit != nil
	t.mu.Unlock()
	if over {
		return ErrExited
	}
	if same {
		return nil
	}
	if err := t.pty.Resize(s); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ending.exit != nil {
		return ErrExited // meanwhile; nothing may follow that mark
	}
	t.putMarkLocked(Mark{Kind: MarkResized, Off: t.stream.texted, Size: s})
	t.boundLocked(t.heldForLocked())
	t.wakeLocked()
	return nil
}
