package term

import (
	"time"

	"tether/internal/clip"
)

// ReadyState says how far a declared terminal is that has a condition.
type ReadyState string

// The states. A terminal without a condition has none.
//
//	ReadyStarting ──▶ ReadyYes ──▶ ReadyStopped   (the exit)
//	     │               ▲                         (it holds after all)
//	     └──▶ ReadyFailed                          (the time limit, or the exit)
const (
	ReadyStarting ReadyState = "starting" // the condition does not hold yet
	ReadyYes      ReadyState = "ready"    // it held once
	ReadyFailed   ReadyState = "failed"   // it has not held in time, and does not yet, or the program has ended before
	ReadyStopped  ReadyState = "stopped"  // it was ready, and its program has ended
)

// Ready is a ReadyState and its reason.
type Ready struct {
	State ReadyState // "": nobody has said when this terminal is ready
	Since time.Time  // when it became so
	Why   string     // which condition holds, or why none does: one line, at most maxWhy bytes
}

const maxWhy = 200 // bytes

// SetReady sets the readiness of the terminal, and wakes those who wait for another state of input. It changes nothing after the exit.
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

// endReadyLocked says what the exit means.
func (t *Terminal) endReadyLocked() {
	switch t.ready.State {
	case ReadyStarting:
		t.setReadyLocked(ReadyFailed, "its program ended before it was ready")
	case ReadyYes:
		t.setReadyLocked(ReadyStopped, "its program has ended")
	}
}
