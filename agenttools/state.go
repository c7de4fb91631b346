package agenttools

import (
	"context"

	"tether/vocab"
)

// StatefulTerminal is a Terminal with further state: whether it waits for the person, and
// whether it is ready. An implementation that lacks one of the two leaves its field
// empty.
type StatefulTerminal interface {
	Terminal
	// State returns the present state, and a channel that is closed when State may return
	// another; nil if that never happens. It is safe for concurrent use, examines the
	// system for a few milliseconds at most, and waits for nobody.
	State() (vocab.State, <-chan struct{})
}

// awaits returns the state of input of a terminal if the program waits for somebody to
// type, else "".
func awaits(t Terminal) vocab.InputState {
	st, ok := t.(StatefulTerminal)
	if i := t.Info(); !ok || i.Exit != nil || !i.Away.IsZero() {
		return ""
	}
	if s, _ := st.State(); s.Input.Awaits() {
		return s.Input
	}
	return ""
}

// Watchable is a Terminals that tells when its list changes.
type Watchable interface {
	Terminals
	// Changed blocks until the visible terminals, their exits, or the presence of their
	// machines may differ from those at the version since, and returns the present
	// version. 0 is never current. Several changes may be one. Its error is that of ctx.
	Changed(ctx context.Context, since uint64) (uint64, error)
}
