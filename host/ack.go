package host

import (
	"time"
)

const (
	// ackHold is the longest that an acknowledgement waits for a subscriber to catch up. It paces an owner that sends
	// faster than the best of its observers reads, so that this one gets every byte.
	ackHold = 100 * time.Millisecond
	// promptAck is how much text is acknowledged at once, in bytes; less waits for ackDelay: the echo of a key has to reach its observers
	// first, who may share this machine's processors with the owner. Owners send 2 KiB without asking.
	promptAck = 1 << 10
	ackDelay  = time.Millisecond
	// healthy is how long a subscriber may leave one message unread and still be waited for.
	healthy = time.Second
)

// ackState is what is owed to the owner of a terminal. Guarded by the host's mutex.
type ackState struct {
	due   bool        // the terminal is in bound.acks
	held  bool        // an acknowledgement waits for a subscriber, or for timer
	timer *time.Timer // ends held

	told  int64       // the position in the last acknowledgement
	late  bool        // delay runs
	delay *time.Timer // ends late

	wait chan struct{} // server-executed terminals: closed when a subscriber has caught up, instead of an acknowledgement
}

// ackLocked owes the owner the present position, at once or as soon as the best of the subscribers has caught up.
func (h *Host) ackLocked(t *terminal) {
	switch {
	case t.bound == nil || !t.creator.resume || t.ack.held:
	case t.crowdedLocked(h.paceBytes()):
		t.ack.held = true
		if t.ack.timer == nil {
			t.ack.timer = time.AfterFunc(ackHold, func() {
				h.mu.Lock()
				defer h.mu.Unlock()
				t.releaseAckLocked()
			})
		} else {
			t.ack.timer.Reset(ackHold)
		}
	case t.applied-t.ack.told < promptAck:
		h.ackLateLocked(t)
	default:
		t.oweAckLocked()
	}
}

// ackLateLocked owes an acknowledgement after ackDelay, unless one goes before, or is held back by then.
func (h *Host) ackLateLocked(t *terminal) {
	if t.ack.late {
		return
	}
	t.ack.late = true
	if t.ack.delay != nil {
		t.ack.delay.Reset(ackDelay)
		return
	}
	t.ack.delay = time.AfterFunc(ackDelay, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		t.ack.late = false
		if !t.ack.held && t.ack.told < t.applied {
			t.oweAckLocked()
		}
	})
}

// paceBytes is how far the best subscriber of a terminal may be behind before its owner is paced.
func (h *Host) paceBytes() int64 { return int64(h.opts.LogBytes) / 4 }

// crowdedLocked reports whether every subscriber that still reads is more than limit bytes behind.
func (t *terminal) crowdedLocked(limit int64) bool {
	waiting := false
	for _, s := range t.subs {
		if s.paused || t.ownedBy(s.conn) || s.conn.guard.lagging(healthy) ||
			s.window != nil && s.window.stuck(healthy) {
			continue
		}
		if t.log.behind(s.next) <= limit {
			return false
		}
		waiting = true
	}
	return waiting
}

// advancedLocked is called when a subscriber has moved on.
func (t *terminal) advancedLocked(s *subscription) {
	if t.ack.held && t.log.behind(s.next) <= s.conn.h.paceBytes() {
		t.releaseAckLocked()
	}
}

// releaseAckLocked sends an acknowledgement that is held back.
func (t *terminal) releaseAckLocked() {
	if !t.ack.held {
		return
	}
	t.ack.held = false
	if t.ack.wait != nil {
		close(t.ack.wait)
		t.ack.wait = nil
		return
	}
	t.ack.timer.Stop()
	t.oweAckLocked()
}

// oweAckNowLocked owes an acknowledgement whether subscribers have caught up or not.
func (t *terminal) oweAckNowLocked() {
	t.releaseAckLocked()
	t.watchedLocked()
	if t.creator.resume {
		t.oweAckLocked()
	}
}

// oweAckLocked lets the owner's writer send the position that t will have then: one at a time, never a queue of them.
func (t *terminal) oweAckLocked() {
	if c := t.bound; c != nil && !t.ack.due {
		t.ack.due = true
		c.acks = append(c.acks, t)
		c.wake()
	}
}

// nextAckLocked is the next acknowledgement for this connection, nil if it is owed none.
func (c *conn) nextAckLocked() []byte {
	for len(c.acks) > 0 {
		t := c.acks[0]
		c.acks = c.acks[1:]
		t.ack.due = false
		if t.bound == c {
			t.ack.told = t.applied
			return appendAck(nil, t.uri, t.applied)
		}
	}
	return nil
}
