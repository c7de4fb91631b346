package term

import (
	"time"

	"tether/internal/clip"
	"tether/vocab"
)

const maxWhy = 200 // bytes

// SetReady sets the readiness of the terminal, and closes the channels that Input has
// returned. It does nothing after the exit.
func (h Handle) SetReady(state vocab.ReadyState, why string) {
	t := h.t
	t.mu.Lock()
	if t.ending.exit == nil {
		t.setReadyLocked(state, why)
	}
	t.mu.Unlock()
	t.pool.changed()
}

func (t *Terminal) setReadyLocked(state vocab.ReadyState, why string) {
	t.ready = vocab.Readiness{Ready: state, ReadySince: time.Now(), ReadyWhy: clip.Text(why, maxWhy)}
	t.attention.changed.Raise()
}

// endReadyLocked sets the readiness that follows from the exit.
func (t *Terminal) endReadyLocked() {
	if after := t.ready.Ended(); after != t.ready {
		t.ready = after
		t.attention.changed.Raise()
	}
}
