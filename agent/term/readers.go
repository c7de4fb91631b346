package term

import (
	"maps"
	"time"

	"tether/agent/flow"
	"tether/internal/change"
)

// readers are the readers for which output is kept: open ones, and awaited ones, which
// are expected back and hold the child meanwhile as an open reader does. Guarded by the
// terminal's mutex, except for room.
type readers struct {
	open    map[*Reader]struct{}
	awaited map[string]int64 // raw offsets of the awaited ones
	room    chan struct{}    // 1 slot, made at construction; signalled when a reader that holds the child has moved, or something was typed
	budget  flow.Budget      // of waiting for readers that may slow the child only a little; unused if the holder is a pacer
}

// await makes an absent reader at raw offset pos hold the child until it arrives under
// that name, or the stall time has passed.
func (a *readers) await(who string, pos int64) {
	if a.awaited == nil {
		a.awaited = map[string]int64{}
	}
	a.awaited[who] = pos
}

// arrived ends the wait for the reader of that name, and reports whether there was one.
func (a *readers) arrived(who string) bool {
	_, ok := a.awaited[who]
	if ok {
		delete(a.awaited, who)
		a.makeRoom()
	}
	return ok
}

// needed returns the raw offset of the first output that a reader which may hold the
// child has not read, or noOffset.
func (a *readers) needed() int64 {
	least := noOffset
	for r := range a.open {
		if r.holds && !r.stalled {
			least = min(least, r.pos)
		}
	}
	for _, pos := range a.awaited {
		least = min(least, pos)
	}
	return least
}

// makeRoom makes a waiting pump check again whether it must wait. It needs no lock.
func (a *readers) makeRoom() {
	change.Wake(a.room)
}

// Names of awaited readers: those of hosts, and numbers for people, who have no names.
func awaitedHost(name string) string { return "host " + name }

func awaitedPerson(n int) string { return "person " + string(rune('0'+n)) }

// maxPeople bounds the people who are expected back.
const maxPeople = 9

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
		case <-t.readers.room:
		case <-t.life.killed:
			over = true
		case <-t.life.leaving:
			over = true
		case <-timer.C:
		}
		timer.Stop()
		t.mu.Lock()
		now := time.Now()
		t.readers.budget.Spend(now, now.Sub(began))
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
	if t.adoption.underWay() || t.pacer != nil {
		return 0, false
	}
	now := time.Now()
	for r := range t.readers.open {
		if !r.lags || !t.fullLocked(r, n) {
			continue
		}
		if now.Sub(t.activity.typed) < flow.Quiet {
			return 0, false
		}
		if left = t.readers.budget.Left(now); left <= 0 {
			r.stalled = true
			continue
		}
		waits = true
	}
	return left, waits
}

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
		case <-t.readers.room:
		case <-t.life.killed:
			return
		case <-t.life.leaving: // the next daemon reads this output again
			return
		case <-stall.C:
			t.mu.Lock()
			for r := range t.readers.open {
				r.stalled = r.stalled || t.blocksLocked(r, n)
			}
			maps.DeleteFunc(t.readers.awaited, func(_ string, pos int64) bool { return t.absentLocked(pos, n) })
			t.needLocked()
			t.mu.Unlock()
			return
		}
	}
}

func (t *Terminal) blocked(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.adoption.underWay() {
		return false // the output that the holder has is read without waiting
	}
	for r := range t.readers.open {
		if t.blocksLocked(r, n) {
			return true
		}
	}
	for _, pos := range t.readers.awaited {
		if t.absentLocked(pos, n) {
			return true
		}
	}
	return false
}

// blocksLocked reports whether r holds the child before n more bytes are appended.
func (t *Terminal) blocksLocked(r *Reader, n int) bool { return r.holds && t.fullLocked(r, n) }

// fullLocked reports whether r would lose output if n more bytes were appended. For a
// reader that has stalled it returns false, and clears stalled if the reader has caught
// up to half of the log.
func (t *Terminal) fullLocked(r *Reader, n int) bool {
	limit := t.log.Limit()
	if r.stalled {
		r.stalled = t.log.Overfull(r.pos, r.mark, n, limit/2)
		return false
	}
	return t.log.Overfull(r.pos, r.mark, n, limit)
}

// absentLocked reports whether an awaited reader at the raw offset holds the child before
// n more bytes are appended.
func (t *Terminal) absentLocked(pos int64, n int) bool {
	return t.log.Overfull(pos, t.log.Marks().Search(pos), n, t.log.Limit())
}
