package channel

import (
	"iter"
	"math"
)

// Channel is one AHP channel, with the newest of its envelopes. Subscribers pull from
// them: a slow subscriber costs no memory, and one whose position was dropped is brought
// up to date by the channel's owner.
type Channel struct {
	// Owner is the client whose text the channel shows; it is not waited for.
	Owner Party
	// Holds says that the source can wait for slow takers, so that the slowest one
	// determines its pace.
	Holds bool
	// Whole says that each entry contains the whole state: a subscriber whose position
	// was dropped continues with the oldest entry.
	Whole bool

	order *Order
	uri   string
	log   log
	subs  []*Subscription
	feeds []*Feed
	ended bool
	pace
}

// NewChannel returns a channel without envelopes.
func (o *Order) NewChannel(uri string) *Channel {
	return &Channel{order: o, uri: uri, log: log{limits: &o.limits, lost: o.seq, need: math.MaxInt64}}
}

// URI returns the channel's URI.
func (c *Channel) URI() string { return c.uri }

// Add appends an envelope and wakes the subscribers: those that w takes when it delivers,
// the others at once. w may be nil.
func (c *Channel) Add(e Entry, w *Wakes) {
	c.log.need = c.needed(len(e.Msg))
	c.log.add(e)
	for _, s := range c.subs {
		s.notice(w)
	}
}

// End ends the channel: no envelope will be added, and a subscription ends when it has
// delivered the rest.
func (c *Channel) End() {
	c.ended = true
	for _, s := range c.subs {
		s.notice(nil)
	}
}

// Ended reports whether no envelope will be added.
func (c *Channel) Ended() bool { return c.ended }

// Bytes returns the size of the envelopes that are kept.
func (c *Channel) Bytes() int64 { return c.log.behind(c.log.first) }

// Shrink drops the oldest envelopes until at most n bytes are left, or one envelope that
// is not large.
func (c *Channel) Shrink(n int64) { c.log.shrink(n) }

// Index returns the index that the next envelope will get.
func (c *Channel) Index() int64 { return c.log.next }

// Entries returns the envelopes from an index on, each with its index. ok is false if
// that index was dropped or does not exist yet.
func (c *Channel) Entries(index int64) (entries iter.Seq2[int64, *Entry], ok bool) {
	return func(yield func(int64, *Entry) bool) {
		for i := index; i < c.log.next && yield(i, c.log.at(i)); i++ {
		}
	}, index >= c.log.first && index <= c.log.next
}

// Subscriptions returns the channel's subscriptions, in no order. The caller does not
// change the slice, which is valid until the next subscription begins or ends.
func (c *Channel) Subscriptions() []*Subscription { return c.subs }
