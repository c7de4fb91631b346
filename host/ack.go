package host

import (
	"time"
)

const (
	// promptAck is how much text is acknowledged at once, in bytes; less waits for ackDelay: the echo of a key has to reach its observers
	// first, who may share this machine's processors with the owner. Owners send 2 KiB without asking.
	promptAck = 1 << 10
	ackDelay  = time.Millisecond
)

// ackState is what is owed to the owner of a terminal. Guarded by the host's mutex.
type ackState struct {
	due   bool        // the terminal is in bound.acks
	held  bool        // the owner waits for subscribers: no acknowledgement is sent
	slow  int         // of a terminal that holds: how many subscribers hold it
	timer *time.Timer // looks again at held after pacePeriod

	owed  int64       // the position to acknowledge next: what came after the owner was held is not in it
	told  int64       // the position in the last acknowledgement
	late  bool        // delay runs
	delay *time.Timer // ends late

	wait chan struct{} // server-executed terminals: closed when the subscribers have caught up, instead of an acknowledgement
}

// ackLocked owes the owner the present position, at once or when the subscribers that pace it have caught up.
func (h *Host) ackLocked(t *terminal) {
	switch {
	case t.bound == nil || !t.creator.resume || t.ack.held:
	case t.pacedLocked():
		t.holdLocked()
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

// releaseAckLocked lets a held owner go on.
func (t *terminal) releaseAckLocked() {
	if !t.ack.held {
		return
	}
	t.freeLocked()
	t.ack.timer.Stop()
	if t.ack.wait != nil {
		close(t.ack.wait)
		t.ack.wait = nil
		return
	}
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

// oweAckLocked lets the owner's writer send the position that t has now: one at a time, never a queue of them.
func (t *terminal) oweAckLocked() {
	t.ack.owed = t.applied
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
			t.ack.told = t.ack.owed
			return appendAck(nil, t.uri, t.ack.owed)
		}
	}
	return nil
}
