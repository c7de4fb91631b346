package channel

import "slices"

// Subscription is the place of one connection in one channel.
type Subscription struct {
	// Of is what the owner knows the subscription by.
	Of any

	taker
	listed bool  // it is in out.ready
	pos    int64 // position in the source's text of what was delivered so far

	from  int64 // see Judge
	all   bool
	sight int64

	changed, seen int64 // serverSeq of the newest news, see News, and of the newest delivered ones
}

// Subscribe makes a subscription, which delivers nothing until Start. of is its Of.
func (c *Channel) Subscribe(o *Outbox, of any) *Subscription {
	s := &Subscription{Of: of, taker: taker{c: c, out: o, paused: true}}
	c.subs = append(c.subs, s)
	return s
}

// Judge records what the subscriber may see: text from the position from on, and all
// entries or only those for everybody and for itself. sight is the number of the state
// from which this follows, see [Outbox.Next].
func (s *Subscription) Judge(from int64, all bool, sight int64) {
	s.from, s.all, s.sight = from, all, sight
}

// Start makes deliveries begin after the present state, at the position pos in the
// source's text.
func (s *Subscription) Start(pos int64) {
	s.seen = s.changed
	s.paused, s.own, s.next, s.pos = false, nil, s.c.log.next, pos
	s.notice(nil)
}

// Started reports whether the subscription delivers.
func (s *Subscription) Started() bool { return !s.paused }

// At returns the position in the source's text of what was delivered so far.
func (s *Subscription) At() int64 { return s.pos }

// Restart brings a subscription up to date whose position was dropped: own comes first,
// then what is added from now on. pos is the position in the source's text behind own.
func (s *Subscription) Restart(own []Piece, pos int64) {
	s.own, s.next, s.pos = own, s.c.log.next, pos
	s.out.catching = s
	s.c.advanced(&s.taker)
}

// News records that the subscriber's own view of the channel has changed at seq. Only the
// newest news is delivered.
func (s *Subscription) News(seq int64) {
	s.changed = seq
	s.notice(nil)
}

// Changed returns the serverSeq of the newest news.
func (s *Subscription) Changed() int64 { return s.changed }

// End ends the subscription.
func (s *Subscription) End() {
	s.own = nil
	s.c.subs = slices.DeleteFunc(s.c.subs, func(o *Subscription) bool { return o == s })
	s.rest()
	if s.out.catching == s {
		s.out.catching = nil
	}
	s.c.left(&s.taker)
}

// rest removes the subscription from the ready ones of its connection.
func (s *Subscription) rest() {
	if s.listed {
		s.listed = false
		s.out.ready = slices.DeleteFunc(s.out.ready, func(o *Subscription) bool { return o == s })
	}
}

// notice adds the subscription to the ready ones of its connection and wakes that.
func (s *Subscription) notice(w *Wakes) {
	if s.paused {
		return
	}
	for log := &s.c.log; s.next >= log.first && s.next < log.next && log.at(s.next).isOf(s.out); s.next++ {
		s.pos = log.at(s.next).At
	}
	if s.next == s.c.log.next && len(s.own) == 0 && s.seen >= s.changed && !s.c.ended {
		return
	}
	if !s.listed {
		s.listed = true
		s.out.ready = append(s.out.ready, s)
	}
	if !w.takes(s) {
		s.out.to.Wake()
	}
}

// peek returns the serverSeq of the subscription's next delivery, 0 if there is none. It
// skips entries that are not for the subscriber.
func (s *Subscription) peek() int64 {
	log := &s.c.log
	for ; s.next < log.next && !log.at(s.next).isFor(s); s.next++ {
		s.pos = log.at(s.next).At
	}
	var seq int64
	switch {
	case len(s.own) > 0:
		seq = s.own[0].Seq
	case s.next < log.next:
		seq = log.at(s.next).Seq
	}
	if s.seen < s.changed && (seq == 0 || s.changed < seq) {
		return s.changed
	}
	return seq
}

// take returns the message whose serverSeq peek has returned, and advances the
// subscription. For news it returns nil.
func (s *Subscription) take(seq int64) (msg []byte) {
	switch {
	case s.seen < s.changed && seq == s.changed:
		s.seen = s.changed
		return nil
	case len(s.own) > 0:
		msg, s.own = s.own[0].Msg, s.own[1:]
	default:
		e := s.c.log.at(s.next)
		s.next++
		s.pos, msg = e.At, e.to(s.out)
	}
	s.c.advanced(&s.taker)
	return msg
}

// lost reports whether the subscription's position was dropped.
func (s *Subscription) lost() bool { return s.next < s.c.log.first }

// Missed returns the envelopes after seq that are for the subscriber, and their size in
// bytes. ok is false if some were dropped, if they are more than most bytes, or if they
// may contain text that the subscriber must not see.
func (s *Subscription) Missed(seq int64, most int) (missed []Piece, bytes int, ok bool) {
	log := &s.c.log
	i, whole := log.after(seq)
	if !whole || s.from > 0 && (i == log.first || log.at(i-1).At < s.from) {
		return nil, 0, false
	}
	for ; i < log.next && bytes <= most; i++ {
		if e := log.at(i); e.isFor(s) {
			missed = append(missed, Piece{e.Seq, e.to(s.out)})
			bytes += len(e.Msg)
		}
	}
	return missed, bytes, bytes <= most
}
