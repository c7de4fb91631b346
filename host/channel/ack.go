package channel

import (
	"strconv"
	"time"

	"tether/ahp"
	"tether/internal/jsonspan"
)

const (
	// promptAck is the amount of text, in bytes, that is acknowledged at once. Less waits
	// for ackDelay: owners send 2 KiB without waiting for an acknowledgement, and an
	// acknowledgement for each key would cost the host and the owner as much as the key's
	// echo.
	promptAck = 1 << 10
	ackDelay  = 20 * time.Millisecond
)

// acks records which acknowledgement must still be sent to the source of a channel.
type acks struct {
	source  *Outbox // of the connection that feeds the channel; nil if none does
	applied int64   // the position up to which the source's text is here
	owed    int64   // the position to acknowledge next, without text that came after the source was held
	acked   int64   // the last position that was acknowledged
	due     *Outbox // where owed is to be sent; nil if nothing is

	late  bool        // the delay timer runs
	delay *time.Timer // fires after ackDelay and clears late
}

// Bind records from whose connection the channel is fed; nil: none. What is still to be
// acknowledged on another connection is not sent there.
func (c *Channel) Bind(source *Outbox) { c.source = source }

// Ack schedules an acknowledgement of a position in the source's text: now, or when the
// takers that pace the source have caught up. w may be nil.
func (c *Channel) Ack(applied int64, w *Wakes) {
	c.applied = applied
	switch {
	case c.source == nil || c.held:
	case c.paced():
		c.hold()
	case c.applied-c.acked < promptAck:
		c.ackLate(w)
	default:
		c.owe()
	}
}

// AckNow schedules an acknowledgement even if takers have not caught up.
func (c *Channel) AckNow(applied int64) {
	c.applied = applied
	c.Release()
	c.owe()
}

// ackLate schedules an acknowledgement after ackDelay. It is not sent then if another one
// was sent meanwhile, or if the source is held. For short output, w calls it again once
// the observers have the output.
func (c *Channel) ackLate(w *Wakes) {
	if w != nil && w.order != nil {
		w.owes = c
		return
	}
	if c.late {
		return
	}
	c.late = true
	if c.delay != nil {
		c.delay.Reset(ackDelay)
		return
	}
	c.delay = time.AfterFunc(ackDelay, func() {
		c.order.mu.Lock()
		defer c.order.mu.Unlock()
		c.late = false
		if !c.held && c.acked < c.applied {
			c.owe()
		}
	})
}

// owe makes the source's connection send an acknowledgement. It is made when it can be
// sent, so there is at most one.
func (c *Channel) owe() {
	c.owed = c.applied
	if o := c.source; o != nil && c.due != o {
		c.due = o
		o.acks = append(o.acks, c)
		o.to.Wake()
	}
}

// Ack returns the connection's next acknowledgement, or nil.
func (o *Outbox) Ack() []byte {
	for len(o.acks) > 0 {
		c := o.acks[0]
		o.acks = o.acks[1:]
		if c.due != o {
			continue
		}
		if c.due = nil; c.source == o {
			c.acked = c.owed
			return appendAck(nil, c.uri, c.owed)
		}
	}
	return nil
}

// appendAck appends the notification that tells a source how much of its text the host
// has.
func appendAck(dst []byte, channel string, applied int64) []byte {
	dst = append(dst, `{"jsonrpc":"2.0","method":"`+ahp.MethodAck+`","params":{"channel":`...)
	dst = jsonspan.AppendQuoteString(dst, channel)
	dst = append(dst, `,"applied":`...)
	return append(strconv.AppendInt(dst, applied, 10), `}}`...)
}
