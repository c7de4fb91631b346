package term

import (
	"context"
	"time"
)

// forgetWithin bounds the end of a holder that is not needed any more.
const forgetWithin = 5 * time.Second

// maxKept is how many of the terminals that have exited, the newest, their
// holders keep for the daemon after this one: a process each.
const maxKept = 20

// dismiss ends the holder of a terminal that has exited when nobody needs it
// any more: it is not kept, and everyone was told, or nobody will be. Until then
// a daemon that comes after this one has it, and can still tell them. It returns
// without having ended it when the terminal is left.
func (t *Terminal) dismiss() {
	if t.holder == nil {
		return
	}
	defer t.holder.Close()
	select {
	case <-t.ending.reported:
	case <-t.life.leaving:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), forgetWithin)
	defer cancel()
	_ = t.holder.Forget(ctx) // one that cannot be reached ends by itself, see agent/holder
}

// tellLocked notes when the exit has been told to everyone it concerns: each
// host the terminal is lent to, each person at it, and whoever kills it.
func (t *Terminal) tellLocked() {
	if t.ownership.attached == 0 && t.ending.knownTo(t.lending.to) {
		t.ending.tell()
	}
}

// stopTelling gives up those who were not told, and does not keep it.
func (t *Terminal) stopTelling() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending.kept = false
	t.ending.tell()
}

// stopKeeping lets the holder go as soon as everyone was told.
func (t *Terminal) stopKeeping() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending.kept = false
	t.chargeLocked()
	t.tellLocked()
}

// Heard says that the actor, a host, knows of the exit.
func (h Handle) Heard() {
	t := h.t
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ending.hear(h.actor.Name)
	if t.holder != nil {
		t.staleLocked() // the next daemon need not tell it
	}
	t.tellLocked()
}

// HasHeard reports whether the actor, a host, knows of the exit, also from the
// daemon before this one.
func (h Handle) HasHeard() bool {
	h.t.mu.Lock()
	defer h.t.mu.Unlock()
	return h.t.ending.exit != nil && h.t.ending.heard[h.actor.Name]
}
