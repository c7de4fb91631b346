package flow

import (
	"sync"
	"time"
)

// Typing is the time of the last input at any of several terminals. The zero value is
// ready; its methods may be called concurrently.
type Typing struct {
	mu       sync.Mutex
	terminal any       // where the last input came
	at       time.Time // when
	before   time.Time // when input came last at any other terminal
}

// Input records input at a terminal, which may be any comparable value.
func (t *Typing) Input(terminal any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.terminal != terminal {
		t.terminal, t.before = terminal, t.at
	}
	t.at = time.Now()
}

// Elsewhere reports whether input came within Quiet at a terminal other than this one:
// somebody waits for an echo there, which a flood here should not delay. Input at the
// terminal itself does not count. Its echo waits behind the flood in any case, and it is
// often what starts the flood: the Enter after a command.
func (t *Typing) Elsewhere(terminal any) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := t.at
	if t.terminal == terminal {
		at = t.before
	}
	return time.Since(at) < Quiet
}
