package term

import (
	"context"
	"time"
)

// forgetWithin bounds the end of a holder that is not needed any more.
const forgetWithin = 5 * time.Second

// dismiss ends the holder of a terminal that has exited when nobody needs it
// any more: everyone was told, or nobody will be. Until then a daemon that
// comes after this one could still tell them. It returns without having ended
// it when the terminal is left.
func (t *Terminal) dismiss() {
	if t.held == nil {
		return
	}
	defer t.held.Close()
	select {
	case <-t.ending.told:
	case <-t.life.leaving:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), forgetWithin)
	defer cancel()
	_ = t.held.Forget(ctx) // one that cannot be reached ends by itself, see agent/holder
}

// tellLocked notes when the exit has been told to everyone it concerns: each
// host the terminal is lent to, each person at it, and whoever kills it.
func (t *Terminal) tellLocked() {
	if t.tenure.attached == 0 && t.ending.knownTo(t.lending.to) {
		t.ending.tell()
	}
}

// stopTelling gives up those who were not told.
func (t *Terminal) stopTelling() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending.tell()
}

// Heard says that the actor, a host, knows of the exit.
func (h Handle) Heard() {
	t := h.t
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending.hear(h.actor.Name)
	t.tellLocked()
}
