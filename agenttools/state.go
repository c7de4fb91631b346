package agenttools

import (
	"context"
	"time"
)

// StatefulTerminal is a Terminal with further state: whether it waits for the person, and whether it is ready. An implementation that lacks
// one of the two leaves its field empty.
type StatefulTerminal interface {
	Terminal
	// State returns the present state, and a channel that is closed when State may return another; nil if that never happens. It is safe for
	// concurrent use, examines the system for a few milliseconds at most, and waits for nobody.
	State() (State, <-chan struct{})
}

// State is a terminal's state apart from its output.
type State struct {
	Input      InputState // "" if the state of input is not examined here
	InputSince time.Time  // when Input became so
	// Prompt is the text before the cursor on its line while Input is InputAwaiting, as the principal may see it; at most 200 bytes. Never set
	// with InputSecret.
	Prompt string

	Ready      ReadyState // "" if no condition was declared for this terminal
	ReadySince time.Time
	ReadyWhy   string // says in one line which condition holds, or why none does
}

// InputState is how the program in the foreground uses its terminal, according to the kernel.
type InputState string

// The states of input. The first two are for people to act on.
const (
	InputAwaiting   InputState = "awaiting_input"  // it reads a line, or a key behind a prompt
	InputSecret     InputState = "awaiting_secret" // it reads a line without echo
	InputRunning    InputState = "running"         // it prints, or computes
	InputQuiet      InputState = "quiet"           // it prints nothing and waits for something else, or would take keys but asks nothing
	InputFullScreen InputState = "full_screen"     // it draws on the alternate screen
	InputUnknown    InputState = "unknown"         // the system does not tell
)

// Awaits reports whether the program waits for somebody to type.
func (s InputState) Awaits() bool { return s == InputAwaiting || s == InputSecret }

// awaits returns the state of input of a terminal if the program waits for somebody to type, else "".
func awaits(t Terminal) InputState {
	st, ok := t.(StatefulTerminal)
	if i := t.Info(); !ok || i.Exit != nil || !i.Away.IsZero() {
		return ""
	}
	if s, _ := st.State(); s.Input.Awaits() {
		return s.Input
	}
	return ""
}

// ReadyState says how far a declared terminal with a condition is on its way to being ready.
type ReadyState string

// The states of a declared terminal with a condition.
const (
	ReadyStarting ReadyState = "starting" // the condition does not hold yet
	ReadyYes      ReadyState = "ready"
	ReadyFailed   ReadyState = "failed"  // it did not hold in time, or the program has ended
	ReadyStopped  ReadyState = "stopped" // it was ready, and its program has ended
)

// Watchable is a Terminals that tells when its list changes.
type Watchable interface {
	Terminals
	// Changed blocks until the visible terminals, their exits, or the presence of their machines may differ from those at the version since,
	// and returns the present version. 0 is never current. Several changes may be one. Its error is that of ctx.
	Changed(ctx context.Context, since uint64) (uint64, error)
}
