package channel

import (
	"sync"
	"time"
)

// Party is the number of a client; 0 is nobody.
type Party int64

// Limits are the bounds of each channel.
type Limits struct {
	Bytes, Count int           // of the envelopes that are kept
	HoldTime     time.Duration // for which a slow taker may hold a channel's source
}

// Order numbers the envelopes of all channels of a host.
type Order struct {
	mu      sync.Locker // the owner's; taken here only by timers and by Wakes
	limits  Limits
	seq     int64
	parties Party
	short   time.Time // when short output last arrived
}

// NewOrder returns the order of a host whose lock is mu. newest is the greatest serverSeq
// that is taken already.
func NewOrder(mu sync.Locker, newest int64, l Limits) *Order {
	return &Order{mu: mu, limits: l, seq: newest}
}

// Next returns the serverSeq for a new envelope. The caller adds the envelope before it
// releases the lock.
func (o *Order) Next() int64 {
	o.seq++
	return o.seq
}

// Newest returns the serverSeq of the newest envelope.
func (o *Order) Newest() int64 { return o.seq }

// NewParty returns a number for a new client.
func (o *Order) NewParty() Party {
	o.parties++
	return o.parties
}

// Typing reports whether somebody may be typing: short output has just arrived.
func (o *Order) Typing() bool { return time.Since(o.short) < typingTime }
