package host

import (
	"time"
)

const (
	// promptAck is the amount of text, in bytes, that is acknowledged at once. Less waits
	// for ackDelay: owners send 2 KiB without waiting for an acknowledgement, and an
	// acknowledgement for each key would cost the host and the owner as much as the key's
	// echo.
	promptAck = 1 << 10
	ackDelay  = 20 * time.Millisecond
)

// ackState records which acknowledgement must still be sent to the owner of a terminal.
// Guarded by the host's mutex.
type ackState struct {
	held  bool        // the owner waits for subscribers: no acknowledgement is sent
	slow  int         // the number of subscribers that hold up the child, if the terminal allows that
	timer *time.Timer // checks held again after pacePeriod

	owed  int64       // the position to acknowledge next, without text that came after the owner was held
	acked int64       // the last position that was acknowledged
	late  bool        // the delay timer runs
	delay *time.Timer // fires after ackDelay and clears late

	wait chan struct{} // for server-executed terminals and mirrors, which get no acknowledgement: closed when the subscribers have caught up
}

// ackLocked schedules an acknowledgement of the current position: now, or when the
// subscribers that pace the terminal have caught up.
func (h *Host) ackLocked(t *terminal) {
	switch {
	case t.bound == nil || !t.creator.resume || t.ack.held:
	case t.pacedLocked():
		t.holdLocked()
	case t.applied-t.ack.acked < promptAck:
		h.ackLateLocked(t)
	default:
		t.oweAckLocked()
	}
}

// ackLateLocked schedules an acknowledgement after ackDelay. It is not sent then if
// another one was sent meanwhile, or if the owner is held. For short output, sendPromptly
// calls it again once the observers have the output.
func (h *Host) ackLateLocked(t *terminal) {
	if h.promptly.on {
		h.promptly.owes = t
		return
	}
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
		if !t.ack.held && t.ack.acked < t.applied {
			t.oweAckLocked()
		}
	})
}

// releaseAckLocked ends the hold of an owner and lets it have its acknowledgement.
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

// oweAckNowLocked schedules an acknowledgement even if subscribers have not caught up.
func (t *terminal) oweAckNowLocked() {
	t.releaseAckLocked()
	t.watchedLocked()
	if t.creator.resume {
		t.oweAckLocked()
	}
}

// oweAckLocked tells the owner's writer to acknowledge the current position of t.
func (t *terminal) oweAckLocked() {
	t.ack.owed = t.applied
	t.oweLocked(noticeAck)
}

// ackNoticeLocked makes the acknowledgement.
func (t *terminal) ackNoticeLocked(*conn) []byte {
	t.ack.acked = t.ack.owed
	return appendAck(nil, t.uri, t.ack.owed)
}
