package term

import "errors"

// ErrEnding: the terminal is being killed.
var ErrEnding = errors.New("the terminal is being killed")

// Promote gives an agent's terminal to the person for good: it is theirs and
// visible from now on. It does nothing to a terminal that is theirs already.
// Errors: ErrEnding, and what the actor may not do.
func (h Handle) Promote() error {
	if err := h.allow(OpPromote); err != nil {
		return err
	}
	if h.Info().Owner == User {
		return nil
	}
	return h.did(Act{Kind: ActPromote}, h.t.promote())
}

func (t *Terminal) promote() error {
	t.mu.Lock()
	switch {
	case t.ownership.owner == User:
		t.mu.Unlock()
		return nil
	case t.ending.exit == nil && t.ending.reason != "":
		t.mu.Unlock()
		return ErrEnding
	}
	t.ownership.promote()
	t.activity.stopIdle()
	t.mu.Unlock()
	t.changed()
	return nil
}
