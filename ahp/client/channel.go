package client

import (
	"slices"

	"tether/ahp"
)

// maxHeldChannel bounds the messages held for a channel without a snapshot, in bytes. If
// a host sends more before the snapshot, the observer closes the connection and makes a
// new one.
const maxHeldChannel = 4 << 20

// channel is a subscription that outlives connections. It is guarded by the observer's
// mutex.
//
//	unsynced ──snapshot──▶ synced ──not resumed, missing from the answer──▶ unsynced
//
// While the channel is unsynced, its envelopes are held: a host may send some before the
// answer with the snapshot.
type channel struct {
	uri      string
	o        *Observer
	synced   bool
	applied  int64              // ServerSeq up to which the state is reduced
	held     []ahp.EnvelopeView // with slices of their own
	heldSize int                // bytes
	body     body
}

// body is the reduced state of a channel.
type body interface {
	install(state []byte) error
	apply(v *ahp.EnvelopeView) error
}

// install applies a snapshot, then the held messages.
func (c *channel) install(s ahp.Snapshot) error {
	if err := c.body.install(s.State); err != nil {
		return err
	}
	c.synced, c.applied = true, s.FromSeq
	held := c.held
	c.held, c.heldSize = nil, 0
	for i := range held {
		c.envelope(&held[i])
	}
	return nil
}

// unsync makes the channel wait for a snapshot.
func (c *channel) unsync() { c.synced, c.held, c.heldSize = false, nil, 0 }

// hold keeps a copy of an envelope and reports whether the held messages are still within
// their bound.
func (c *channel) hold(v *ahp.EnvelopeView) bool {
	w := *v
	w.Action, w.Data, w.Screen = slices.Clone(v.Action), slices.Clone(v.Data), slices.Clone(v.Screen)
	c.held = append(c.held, w)
	c.heldSize += eventCost + len(w.Action) + len(w.Data) + len(w.Screen)
	return c.heldSize <= maxHeldChannel
}

// envelope applies an action that is new and was not refused.
func (c *channel) envelope(v *ahp.EnvelopeView) {
	if v.ServerSeq <= c.applied {
		return
	}
	c.applied = v.ServerSeq
	if !v.Rejected {
		_ = c.body.apply(v) // what cannot be read is skipped
	}
}
