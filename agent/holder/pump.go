package holder

import (
	"math"
	"runtime/debug"
	"time"
)

// readSize is the size of one read from the pty: Linux returns at most 4,095 bytes, macOS less. The buffer is held also while the child is
// silent, so it is no more than a page.
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

// rest is called after output was read, when a flood should rest for d. It moves more available output into the log until the burst has
// lasted for two thirds of the rest before it, and then leaves the pty alone: the child waits until its terminal has room, and the
// processors are free for other work, such as answering a key that is typed elsewhere. A burst is bounded in time and not in bytes because
// machines differ: so the flood keeps more than half of its throughput on all of them. It returns how many more bytes it has read.
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

// put appends output. While the log is full of bytes that the daemon has not taken it waits, so that the child does, but not for ever. In a
// flood it returns how long the daemon wants it to rest.
func (h *holder) put(p []byte) (rest time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inRead = false
	h.holdBrieflyLocked(len(p))
	h.since = time.Now()
	for !h.free && !h.fitsLocked(len(p)) {
		left := h.patienceLocked()
		if left <= 0 {
			h.free, h.keep = true, keepNothing
			break
		}
		h.holding = true
		h.mu.Unlock()
		h.await(left)
		h.mu.Lock()
		h.holding = false
	}
	h.log.Append(p)
	h.lastByte = time.Now()
	if h.lastByte.Sub(h.awake) >= pause {
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

// holdBrieflyLocked waits while n more bytes would exceed the daemon's room, for the sake of readers that may slow the child only a little.
// Once the budget is used, the child does not wait for them until they have caught up.
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
		h.holding = true
		h.mu.Unlock()
		h.await(left)
		h.mu.Lock()
		h.holding = false
		now := time.Now()
		h.budget.Spend(now, now.Sub(began))
	}
}

func (h *holder) fitsLocked(n int) bool {
	return h.log.End()+int64(n)-h.floorLocked() <= int64(h.log.Limit())
}

// floorLocked is the offset from which on bytes must not be dropped. A quarter of the log is for taken output: a daemon may be killed
// before it could use it. Output that it needs for longer it announces by keep.
func (h *holder) floorLocked() int64 {
	taken := h.taken
	if h.session != nil {
		taken = h.session.taken
	}
	return max(min(taken-int64(h.log.Limit()/4), h.keep), h.log.Start())
}

// keepNothing is the keep of a daemon that needs none of the output that it has taken.
const keepNothing = math.MaxInt64

// killedHold is how long a full log may hold a child whose end was asked for: who asked waits for it, and a host that is gone must not make
// them.
const killedHold = 10 * time.Second

// patienceLocked is how much longer a full log may hold the child.
func (h *holder) patienceLocked() time.Duration {
	bound := h.spec.AwayHold
	if h.session != nil {
		bound = h.spec.Stall
	}
	if h.killed {
		bound = min(bound, killedHold)
	}
	return bound - time.Since(h.since)
}

// await pauses pump until something changed, d passed, or a signal asked for the end.
func (h *holder) await(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-h.room:
	case <-timer.C:
	case <-h.ending:
		h.mu.Lock()
		h.free = true
		h.mu.Unlock()
	}
}

// movedLocked is called when a daemon took something, came or went: patience counts anew.
func (h *holder) movedLocked() {
	h.since = time.Now()
	h.lookLocked()
}

// lookLocked has a waiting pump look again.
func (h *holder) lookLocked() {
	select {
	case h.room <- struct{}{}:
	default:
	}
}
