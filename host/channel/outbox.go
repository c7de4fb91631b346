package channel

import "time"

// Receiver is the other end of a connection. Its methods do not block.
type Receiver interface {
	// Wake makes the receiver ask [Outbox.Next], soon and on a goroutine of its own.
	Wake()
	// Sending returns for how long one message has been waiting until the other end takes
	// it; 0: none waits.
	Sending() time.Duration
	// Direct makes the receiver ask and send on the caller's goroutine, at most limit
	// bytes. It returns false if that could block; nothing was sent then. It is called
	// without the lock.
	Direct(limit int) (done bool)
}

// Outbox is what is on its way to one connection.
type Outbox struct {
	Party Party // of the connection's client; 0 before the handshake
	Old   bool  // the client gets the encoding of versions up to 0.8
	Busy  bool  // the receiver has other work to do when it asks, so only its own goroutine asks

	to       Receiver
	ready    []*Subscription // those with entries to deliver
	direct   []Piece         // for this connection alone
	catching *Subscription   // the last one that was restarted
	acks     []*Channel      // those whose acknowledgements are to be sent here
}

// maxDirect bounds the queued envelopes that are for one connection alone.
const maxDirect = 64

// NewOutbox returns the outbox of a connection.
func NewOutbox(to Receiver) *Outbox { return &Outbox{to: to} }

// Direct queues an envelope for this connection alone. ok is false if too many are
// queued.
func (o *Outbox) Direct(p Piece) (ok bool) {
	if len(o.direct) >= maxDirect {
		return false
	}
	o.direct = append(o.direct, p)
	o.to.Wake()
	return true
}

// Need is what the owner of a channel has to do for a subscription.
type Need int

// The needs of a subscription.
const (
	Nothing Need = iota
	Judge        // the state of rights has changed: Subscription.Judge
	CatchUp      // its position was dropped: Subscription.Restart, or End
	News         // the message of its news comes next
	End          // the channel has ended and everything was delivered: Subscription.End
)

// Next returns the connection's next envelope, which is the one with the smallest
// serverSeq of all its subscriptions, or nil. If a subscription needs something first, it
// returns that subscription instead; the caller does what it needs and asks again. sight
// is the number of the present state of rights.
//
// Only one subscription at a time catches up: that takes memory for its subscriber alone,
// who may have a thousand channels.
func (o *Outbox) Next(sight int64) (msg []byte, s *Subscription, need Need) {
	var first *Subscription
	least := int64(0)
	for i := 0; i < len(o.ready); {
		s := o.ready[i]
		switch {
		case !s.lost():
		case s.c.Whole:
			s.next, s.seen = s.c.log.first, 0
		case s != o.catching && len(s.own) == 0 && o.CatchingUp():
			i++
			continue
		default:
			return nil, s, CatchUp
		}
		if s.sight != sight {
			return nil, s, Judge
		}
		switch seq := s.peek(); {
		case seq == 0 && s.c.ended:
			return nil, s, End
		case seq == 0:
			s.rest() // another subscription takes its index
			continue
		case first == nil || seq < least:
			first, least = s, seq
		}
		i++
	}
	if len(o.direct) > 0 && (first == nil || o.direct[0].Seq < least) {
		msg, o.direct = o.direct[0].Msg, o.direct[1:]
		return msg, nil, Nothing
	}
	if first == nil {
		return nil, nil, Nothing
	}
	if msg = first.take(least); msg == nil {
		return nil, first, News
	}
	return msg, nil, Nothing
}

// CatchingUp reports whether the rest of a restarted subscription can be sent.
func (o *Outbox) CatchingUp() bool {
	return o.catching != nil && o.catching.listed && len(o.catching.own) > 0
}

// More reports whether there may be another acknowledgement or envelope.
func (o *Outbox) More() bool { return len(o.acks)+len(o.ready) > 0 }

// Unsent reports whether an envelope may be waiting.
func (o *Outbox) Unsent() bool { return len(o.ready)+len(o.direct) > 0 }

// Ready returns the subscriptions that may have something to deliver, in no order. The
// caller does not change the slice, which is valid until a subscription begins or ends.
func (o *Outbox) Ready() []*Subscription { return o.ready }
