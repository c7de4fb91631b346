package term

import (
	"context"
	"time"
)

// idleWatch ends an agent's background terminal that nobody uses. The timer
// is guarded by the terminal's mutex and nil while nothing is watched.
type idleWatch struct {
	after time.Duration // 0: never
	timer *time.Timer
}

func (w *idleWatch) stopLocked() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// idleKill bounds the end of a terminal that was idle.
const idleKill = 30 * time.Second

// watchIdle begins to watch. Output and input move nothing: when the time is
// over, the timer looks when the last of them was.
func (t *Terminal) watchIdle() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.idle.after > 0 && t.owner.Role == RoleAgent && t.exit == nil {
		t.idle.timer = time.AfterFunc(t.idle.after, t.endIdle)
	}
}

// endIdle kills the terminal if it was idle for as long as it may be.
func (t *Terminal) endIdle() {
	t.mu.Lock()
	last := t.started
	for _, at := range []time.Time{t.lastByte, t.lastInput} {
		if at.After(last) {
			last = at
		}
	}
	left := t.idle.after - time.Since(last)
	ends := left <= 0 && t.idlesLocked()
	switch {
	case ends:
		t.reason = ReasonIdle // under the same lock as the look at the owner: a promotion comes before or not at all
	case t.idlesLocked():
		t.idle.timer.Reset(left)
	}
	t.mu.Unlock()
	if ends {
		ctx, cancel := context.WithTimeout(context.Background(), idleKill)
		defer cancel()
		err := t.terminate(ctx, ReasonIdle) // what survives KILL for that long is out of reach
		t.observe(Act{Kind: ActKill, Detail: "it was idle", Err: err})
	}
}

// idlesLocked reports whether the terminal is an agent's, runs and is not being
// ended.
func (t *Terminal) idlesLocked() bool {
	return t.owner.Role == RoleAgent && t.exit == nil && t.reason == ""
}
