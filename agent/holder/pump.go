package holder

import (
	"runtime/debug"
	"time"

	"tether/agent/flow"
	"tether/internal/change"
)

// readSize is the size of one read from the pty: Linux returns at most 4,095 bytes, macOS
// less. The buffer is held also while the child is silent, so it is no more than a page.
const readSize = 4 << 10

// pump moves output from the pty into the log until its end.
func (h *holder) pump() {
	defer close(h.pumped)
	buf := make([]byte, readSize)
	for total := 0; ; {
		h.setInRead(true)
		n, err := h.child.Read(buf)
		if n > 0 {
			if d := h.put(buf[:n]); d > 0 {
				n += h.rest(buf, d)
			}
			if total < gcLater && total+n >= gcLater {
				debug.SetGCPercent(gcPercent)
			}
			total += n
		}
		if err != nil {
			return // io.EOF, or the pty was closed: either way nothing follows
		}
	}
}

// Bounds of a flood that rests.
const (
	floodBytes = 16 << 10             // printed without a pause before the first rest: an answer to a key is shorter
	restMax    = 5 * time.Millisecond // upper bound for the daemon's request
)

// rest throttles a flood while somebody types at another terminal. Until restDue, for two
// thirds of the duration of the previous rest, it reads what the pty has. Then it sleeps
// for d without reading: the child waits until the pty has room, and the processors are
// free to answer the key. Bursts are bounded in time, not in bytes, so that the flood's
// share does not depend on the machine's speed (docs/PERFORMANCE.md has measurements). It
// may block in put. It returns how many more bytes it has read.
func (h *holder) rest(buf []byte, d time.Duration) (more int) {
	c, ok := h.child.(interface{ TryRead(p []byte) int })
	if !ok {
		return 0
	}
	for time.Now().Before(h.restDue) {
		k := c.TryRead(buf)
		if k == 0 {
			return more
		}
		h.put(buf[:k])
		more += k
	}
	began := time.Now()
	time.Sleep(d)
	now := time.Now()
	h.restDue = now.Add(now.Sub(began) * 2 / 3)
	h.mu.Lock()
	h.awake = now
	h.mu.Unlock()
	return more
}

func (h *holder) setInRead(v bool) {
	h.mu.Lock()
	h.inRead = v
	h.mu.Unlock()
}

// put appends p to the log. While the log is full of output that the daemon has not
// taken, put releases h.mu and blocks, so that the child waits too: for Spec.Stall with a
// daemon connected, for Spec.AwayHold without one. After that the oldest output is
// dropped. In a flood it returns for how long the daemon wants the pump to rest.
func (h *holder) put(p []byte) (rest time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inRead = false
	h.holdBrieflyLocked(len(p))
	h.since = time.Now()
	for !h.free && !h.fitsLocked(len(p)) {
		left := h.stallLeftLocked()
		if left <= 0 {
			h.free, h.keep = true, NoOffset
			break
		}
		h.awaitLocked(left)
	}
	h.log.Append(p)
	h.lastByte = time.Now()
	if h.lastByte.Sub(h.awake) >= flow.Pause {
		h.flood = 0
	}
	h.flood, h.awake = h.flood+len(p), h.lastByte
	h.notes.trim(h.log.Start())
	h.screens.forget(h.log.Start())
	if s := h.session; s != nil && s.streaming {
		s.grownLocked()
		if h.flood >= floodBytes {
			rest = s.rest
		}
	}
	return rest
}

// holdBrieflyLocked delays n bytes beyond session.until, for readers that may slow the
// child only a little (flow.Budget). It releases h.mu while it waits. Once the budget is
// used up, it does not wait again until those readers have caught up.
func (h *holder) holdBrieflyLocked(n int) {
	for !h.free && !h.killed {
		s := h.session
		if s == nil || s.spent || h.log.End()+int64(n) <= s.until {
			return
		}
		began := time.Now()
		left := h.budget.Left(began)
		if left <= 0 {
			s.spent = true
			return
		}
		h.awaitLocked(left)
		now := time.Now()
		h.budget.Spend(now, now.Sub(began))
	}
}

func (h *holder) fitsLocked(n int) bool {
	return h.log.End()+int64(n)-h.floorLocked() <= int64(h.log.Limit())
}

// floorLocked returns the offset of the oldest byte that must not be dropped. A quarter
// of the log is reserved for output that the daemon has taken, because it may be killed
// before it uses that output. A daemon that needs output for longer says so with keep.
func (h *holder) floorLocked() int64 {
	taken := h.taken
	if h.session != nil {
		taken = h.session.taken
	}
	return max(min(taken-int64(h.log.Limit()/4), h.keep), h.log.Start())
}

// killedHold bounds how long a full log may block a child that is being killed: the
// caller of Kill waits for the child's end, and a host that is gone must not delay that
// further.
const killedHold = 10 * time.Second

// stallLeftLocked returns how much longer a full log may hold the child.
func (h *holder) stallLeftLocked() time.Duration {
	bound := h.spec.AwayHold
	if h.session != nil {
		bound = h.spec.Stall
	}
	if h.killed {
		bound = min(bound, killedHold)
	}
	return bound - time.Since(h.since)
}

// awaitLocked blocks pump until h.room is signalled, d has passed, or the holder is told
// to end. In the last case it sets h.free, so that pump does not wait again. It releases
// h.mu while it waits.
func (h *holder) awaitLocked(d time.Duration) {
	h.holding = true
	h.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	ending := false
	select {
	case <-h.room:
	case <-timer.C:
	case <-h.ending:
		ending = true
	}
	h.mu.Lock()
	h.holding, h.free = false, h.free || ending
}

// movedLocked restarts the stall time and wakes pump. It is called when a daemon
// connects, begins to stream, takes output or leaves, when keep moves, and when a kill
// begins.
func (h *holder) movedLocked() {
	h.since = time.Now()
	h.lookLocked()
}

// lookLocked wakes a waiting pump. It does not block.
func (h *holder) lookLocked() {
	change.Wake(h.room)
}
