package host

import (
	"slices"
	"time"
)

// subscription is one connection's place in one channel. Guarded by the host's mutex.
type subscription struct {
	conn *conn
	ch   *channel

	since     time.Time
	withdrawn bool // its subscriber does not see the terminal any more

	paused bool  // its snapshot was not sent yet
	listed bool  // it is in conn.ready
	next   int64 // index in the log of the envelope to deliver next
	pos    int64 // terminal: stream position of the text delivered so far

	// Of the root: serverSeq of the newest change of the subscriber's view of the
	// catalogue, and of the newest delivered.
	changed, seen int64

	holding holding // of a terminal's subscriber

	// own has entries only for this subscriber, which come before the log: the rest of a
	// resynchronisation.
	own []entry
}

// subscribeLocked makes a subscription of c to ch, which delivers nothing until its
// snapshot is taken. An existing one goes on delivering.
func (c *conn) subscribeLocked(ch *channel) *subscription {
	s := c.subs[ch.uri]
	if s == nil || s.ch != ch {
		s = &subscription{conn: c, ch: ch, changed: c.h.listed.changed, since: time.Now(), paused: true}
		c.subs[ch.uri] = s
		ch.subs = append(ch.subs, s)
		if ch.isRoot() {
			c.hold.l.subs = append(c.hold.l.subs, s)
		}
		if ch.term != nil {
			c.h.rowChangedLocked(ch.term)
			ch.term.watchedLocked()
		}
	}
	return s
}

// startLocked makes deliveries begin after the present state.
func (s *subscription) startLocked() {
	s.resumeLocked(s.ch.log.next)
	s.seen = s.changed
}

// resumeLocked starts deliveries with the entry at index next.
func (s *subscription) resumeLocked(next int64) {
	s.paused, s.own, s.next = false, nil, next
	if t := s.ch.term; t != nil {
		s.pos = t.content.end
	}
	s.noticeLocked()
}

// endLocked removes the subscription from its channel and its connection.
func (s *subscription) endLocked() {
	if s.conn.subs[s.ch.uri] == s {
		delete(s.conn.subs, s.ch.uri)
	}
	s.ch.subs = remove(s.ch.subs, s)
	if s.ch.isRoot() {
		s.conn.hold.l.subs = remove(s.conn.hold.l.subs, s)
	}
	if s.listed {
		s.conn.ready = remove(s.conn.ready, s)
		s.listed = false
	}
	if t := s.ch.term; t != nil {
		s.conn.h.rowChangedLocked(t)
		t.leftLocked(s)
		if t.parked != nil {
			s.conn.h.trimParkedLocked(t)
		}
		t.unwatched = time.Now()
		t.watchedLocked()
	}
}

// noticeLocked adds the subscription to the ready ones of its connection and wakes the
// connection's writer.
func (s *subscription) noticeLocked() {
	if s.paused {
		return
	}
	s.skipOwnLocked()
	if s.next == s.ch.log.next && len(s.own) == 0 && !s.ch.isRoot() && !s.ch.ended {
		return
	}
	if !s.listed {
		s.listed = true
		s.conn.ready = append(s.conn.ready, s)
	}
	s.conn.wakeLocked()
}

// skipOwnLocked skips the subscriber's own text, and entries that are not for it.
func (s *subscription) skipOwnLocked() {
	for log := &s.ch.log; s.next >= log.first && s.next < log.next; s.next++ {
		e := log.at(s.next)
		if e.isFor(s) {
			return
		}
		s.pos = e.pos
	}
}

// peekLocked returns the serverSeq of the subscription's next delivery, 0 if there is
// none. If its position was dropped from the log, it resynchronises the subscription
// first.
func (s *subscription) peekLocked() int64 {
	log := &s.ch.log
	if s.next < log.first {
		s.resyncLocked()
		s.conn.catching = s
	}
	s.skipOwnLocked()
	var seq int64
	switch {
	case len(s.own) > 0:
		seq = s.own[0].seq
	case s.next < log.next:
		seq = log.at(s.next).seq
	}
	if s.ch.term == nil && s.seen < s.changed && (seq == 0 || s.changed < seq) {
		return s.changed
	}
	return seq
}

// takeLocked returns the message whose serverSeq peekLocked has returned, and advances
// the subscription.
func (s *subscription) takeLocked() []byte {
	log := &s.ch.log
	if len(s.own) > 0 {
		msg := s.own[0].msg
		if s.own = s.own[1:]; len(s.own) == 0 && s.ch.term != nil {
			s.ch.term.advancedLocked(s)
		}
		return msg
	}
	if s.ch.term == nil && s.seen < s.changed && (s.next == log.next || log.at(s.next).seq > s.changed) {
		s.seen = s.changed
		return s.listingLocked()
	}
	e := log.at(s.next)
	s.next++
	s.pos = e.pos
	if t := s.ch.term; t != nil {
		t.advancedLocked(s)
	}
	return e.to(s.conn.client)
}

// nextDataLocked returns the connection's next envelope: that with the smallest serverSeq
// of all its subscriptions, or nil.
func (c *conn) nextDataLocked() []byte {
	var first *subscription
	least := int64(0)
	for i := 0; i < len(c.ready); {
		s := c.ready[i]
		if s != c.catching && c.catching.catchesUp() && s.fallen() {
			i++ // one at a time: each resynchronisation takes memory for this subscriber only, and it may have a thousand channels
			continue
		}
		seq := s.peekLocked()
		if seq == 0 {
			c.restLocked(s)
			continue // another subscription has taken its index
		}
		if first == nil || seq < least {
			first, least = s, seq
		}
		i++
	}
	if len(c.direct) > 0 && (first == nil || c.direct[0].seq < least) {
		msg := c.direct[0].msg
		c.direct = c.direct[1:]
		return msg
	}
	if first == nil {
		return nil
	}
	return first.takeLocked()
}

// catchesUp reports whether the rest of a resynchronisation can be sent; s may be nil.
func (s *subscription) catchesUp() bool { return s != nil && s.listed && len(s.own) > 0 }

// fallen reports whether the position of a subscription to a terminal was dropped from
// the log.
func (s *subscription) fallen() bool {
	return s.ch.term != nil && len(s.own) == 0 && s.next < s.ch.log.first
}

// restLocked removes a subscription with nothing to deliver from the ready ones. It ends
// the subscription if the channel has ended.
func (c *conn) restLocked(s *subscription) {
	if s.ch.ended {
		s.endLocked()
		return
	}
	s.listed = false
	c.ready = remove(c.ready, s)
}

// remove removes one element from a slice in which the order does not matter.
func remove[T comparable](list []T, x T) []T {
	i := slices.Index(list, x)
	if i < 0 {
		return list
	}
	last := len(list) - 1
	list[i] = list[last]
	var zero T
	list[last] = zero
	return list[:last]
}
