package term

import (
	"time"

	"tether/agent/flow"
	"tether/internal/change"
)

// holding is the state of waiting for readers. Guarded by the terminal's mutex, except
// for room.
type holding struct {
	room   chan struct{} // 1 slot, made at construction; signalled when a reader that may make the child wait has moved, or something was typed
	budget flow.Budget   // of waiting for readers that may slow the child only a little; unused if the holder is a pacer
}

// makeRoom makes a waiting pump check again whether it must wait. It needs no lock.
func (h *holding) makeRoom() { change.Wake(h.room) }

// Names of awaited readers: those of hosts, and numbers for people, who have no names.
func awaitedHost(name string) string { return "host " + name }

func awaitedPerson(n int) string { return "person " + string(rune('0'+n)) }

// maxPeople bounds the people who are expected back.
const maxPeople = 9

// hold waits while appending n bytes would drop output that a reader has not read and for
// which the child is held: for readers that hold the child at most the pool's stall time,
// for others see holdBriefly. Only the pump calls it.
func (t *Terminal) hold(n int) {
	t.holdLong(n)
	t.holdBriefly(n)
}

func (t *Terminal) holdLong(n int) {
	if !t.blocked(n) {
		return
	}
	stall := time.NewTimer(t.pool.opts.Stall)
	defer stall.Stop()
	for t.blocked(n) {
		select {
		case <-t.holding.room:
		case <-t.life.killed:
			return
		case <-t.life.leaving: // the next daemon reads this output again
			return
		case <-stall.C:
			t.mu.Lock()
			t.log.StopWaiting(n)
			t.needLocked()
			t.mu.Unlock()
			return
		}
	}
}

func (t *Terminal) blocked(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.log.Restoring() && t.log.Blocks(n) // the output that the holder has is read without waiting
}

// holdBriefly waits while appending n bytes would drop output that has not been read by a
// reader that may slow the child only a little. It does not wait if the holder does so in
// its place, see pacer. Once the budget is used up, the child does not wait for such a
// reader until it has caught up.
func (t *Terminal) holdBriefly(n int) {
	for {
		left, waits := t.holdLeft(n)
		if !waits {
			return
		}
		began := time.Now()
		timer := time.NewTimer(left)
		over := false
		select {
		case <-t.holding.room:
		case <-t.life.killed:
			over = true
		case <-t.life.leaving:
			over = true
		case <-timer.C:
		}
		timer.Stop()
		t.mu.Lock()
		now := time.Now()
		t.holding.budget.Spend(now, now.Sub(began))
		t.mu.Unlock()
		if over {
			return
		}
	}
}

// holdLeft reports whether the child must wait for readers that may slow it only a little
// before n bytes are appended, and for how long at most.
func (t *Terminal) holdLeft(n int) (left time.Duration, waits bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if t.log.Restoring() || t.pacer != nil || !t.log.BlocksBriefly(n) || now.Sub(t.activity.typed) < flow.Quiet {
		return 0, false
	}
	if left = t.holding.budget.Left(now); left <= 0 {
		t.log.StopWaitingBriefly(n)
	}
	return left, left > 0
}
