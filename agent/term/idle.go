package term

import (
	"context"
	"time"

	"tether/vocab"
)

// activity is when the terminal was last used, and the watch that ends an agent's
// background terminal that nobody uses. Guarded by the terminal's mutex.
type activity struct {
	printed time.Time // zero before the first byte
	typed   time.Time
	person  time.Time   // when the person has typed
	stopped time.Time   // when ^C was typed, or a signal was sent
	fed     time.Time   // when standard input was last written
	inRead  bool        // pump waits for the child
	idle    *time.Timer // runs endIdle; nil while nothing is watched
	limit   *time.Timer // runs endLate; nil without a limit
}

// last returns the time of the latest use, or began.
func (a *activity) last(began time.Time) time.Time {
	for _, at := range []time.Time{a.printed, a.typed, a.fed} {
		if at.After(began) {
			began = at
		}
	}
	return began
}

func (a *activity) stopIdle() {
	for _, timer := range []*time.Timer{a.idle, a.limit} {
		if timer != nil {
			timer.Stop()
		}
	}
}

// idleKill bounds the time for killing an idle terminal.
const idleKill = 30 * time.Second

// watchIdle starts the timers. Output and input do not reset them: when idle fires, it
// checks when the terminal was last used.
func (t *Terminal) watchIdle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.origin.idleAfter > 0 && t.ownership.owner.Role == RoleAgent && t.ending.exit == nil {
		t.activity.idle = time.AfterFunc(t.origin.idleAfter, t.endIdle)
	}
	if t.origin.endAfter > 0 && t.ownership.owner.Role == RoleAgent && t.ending.exit == nil {
		t.activity.limit = time.AfterFunc(time.Until(t.origin.started.Add(t.origin.endAfter)), t.endLate)
	}
}

// endIdle kills the terminal if it was idle for as long as it may be, and otherwise
// restarts the timer.
func (t *Terminal) endIdle() {
	t.mu.Lock()
	left := t.origin.idleAfter - time.Since(t.activity.last(t.origin.started))
	ends := left <= 0 && t.idlesLocked()
	switch {
	case ends:
		t.ending.because(vocab.ExitIdle) // under the lock under which the owner was checked: a promotion comes before that or is refused
	case t.idlesLocked():
		t.activity.idle.Reset(left)
	}
	t.mu.Unlock()
	if ends {
		t.endFor("the terminal was idle")
	}
}

// endLate kills the terminal because it has run for as long as it may.
func (t *Terminal) endLate() {
	t.mu.Lock()
	ends := t.idlesLocked()
	if ends {
		t.ending.because(vocab.ExitIdle)
	}
	t.mu.Unlock()
	if ends {
		t.endFor("the terminal ran for " + t.origin.endAfter.String() + ", its limit")
	}
}

func (t *Terminal) endFor(why string) {
	ctx, cancel := context.WithTimeout(context.Background(), idleKill)
	defer cancel()
	err := t.terminate(ctx, vocab.ExitIdle) // processes that survive KILL for that long are out of reach
	t.observe(Act{Kind: ActKill, Detail: why, Err: err})
}

// idlesLocked reports whether the terminal is an agent's, runs and is not being ended.
func (t *Terminal) idlesLocked() bool {
	return t.ownership.owner.Role == RoleAgent && t.ending.exit == nil && t.ending.reason == ""
}
