package term

import (
	"time"

	"tether/internal/clip"
)

// ReadyState says whether the condition of a declared terminal holds.
type ReadyState string

// The states. A terminal without a condition has none.
//
//	ReadyStarting ──▶ ReadyYes ──▶ ReadyStopped   (the exit)
//	     │               ▲                         (it holds after all)
//	     └──▶ ReadyFailed                          (the time limit, or the exit)
const (
	ReadyStarting ReadyState = "starting" // the condition does not hold yet
	ReadyYes      ReadyState = "ready"    // it held once
	ReadyFailed   ReadyState = "failed"   // the condition did not hold in time and still does not, or the program has ended before it held
	ReadyStopped  ReadyState = "stopped"  // it was ready, and its program has ended
)

// Ready is a ReadyState and its reason.
type Ready struct {
	State ReadyState // "": the terminal has no condition
	Since time.Time  // when State was set
	Why   string     // which condition holds, or why it does not: one line, at most maxWhy bytes
}

const maxWhy = 200 // bytes

// SetReady sets the readiness of the terminal, and closes the channels that Input has returned. It does nothing after the exit.
func (h Handle) SetReady(state ReadyState, why string) {
	t := h.t
	t.mu.Lock()
	if t.ending.exit == nil {
		t.setReadyLocked(state, why)
	}
	t.mu.Unlock()
	t.pool.changed()
}

func (t *Terminal) setReadyLocked(state ReadyState, why string) {
	t.ready = Ready{state, time.Now(), clip.Text(why, maxWhy)}
	t.attention.changed.Raise()
}

// endReadyLocked sets the readiness that follows from the exit.
func (t *Terminal) endReadyLocked() {
	switch t.ready.State {
	case ReadyStarting:
		t.setReadyLocked(ReadyFailed, "its program ended before it was ready")
	case ReadyYes:
		t.setReadyLocked(ReadyStopped, "its program has ended")
	}
}
