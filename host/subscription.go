package host

import (
	"slices"
	"time"

	"tether/host/channel"
	"tether/host/sessions"
)

// topic is a channel and what it is about: a terminal, a session, or neither for the
// root.
type topic struct {
	ch      *channel.Channel // nil: there is no such channel
	term    *terminal
	session *sessions.Session // of which it is one of the two channels
}

// isRoot reports whether the channel is the root.
func (o *topic) isRoot() bool { return o.term == nil && o.session == nil }

// subscription is a connection's subscription to a topic. Guarded by the host's mutex.
type subscription struct {
	*channel.Subscription
	topic
	conn      *conn
	since     time.Time
	withdrawn bool // its subscriber does not see the terminal any more
}

// subscribeLocked makes a subscription of c to a topic, which delivers nothing until its
// snapshot is taken. An existing one goes on delivering.
func (c *conn) subscribeLocked(to topic) *subscription {
	s := c.subs[to.ch.URI()]
	if s == nil || s.ch != to.ch {
		s = &subscription{conn: c, topic: to, since: time.Now()}
		s.Subscription = to.ch.Subscribe(c.out, s)
		s.judgeLocked()
		c.subs[to.ch.URI()] = s
		if s.isRoot() {
			s.News(c.h.listed.changed)
			c.hold.l.subs = append(c.hold.l.subs, s)
		}
		if s.term != nil {
			s.term.touch(inRows)
			s.term.watchedLocked()
		}
	}
	return s
}

// judgeLocked tells the subscription what its subscriber may see at present.
func (s *subscription) judgeLocked() {
	var from int64
	all := false
	switch {
	case s.term != nil:
		from = s.conn.fromLocked(s.term)
	case s.session != nil:
		all = s.session.Open(s.conn)
	}
	s.Judge(from, all, s.conn.h.sight)
}

// startLocked makes deliveries begin after the present state.
func (s *subscription) startLocked() {
	var end int64
	if s.term != nil {
		end = s.term.out.End()
	}
	s.Start(end)
}

// endLocked removes the subscription from its channel and its connection.
func (s *subscription) endLocked() {
	if uri := s.ch.URI(); s.conn.subs[uri] == s {
		delete(s.conn.subs, uri)
	}
	if s.isRoot() {
		s.conn.hold.l.subs = remove(s.conn.hold.l.subs, s)
	}
	s.End()
	if t := s.term; t != nil {
		t.touch(inRows)
		if t.parked() != nil {
			s.conn.h.trimParkedLocked(t)
		}
		t.unwatched = time.Now()
		t.watchedLocked()
	}
}

// nextDataLocked returns the connection's next envelope, or nil. It may release the
// host's mutex meanwhile.
func (c *conn) nextDataLocked() []byte {
	for draws := 0; ; {
		msg, next, need := c.out.Next(c.h.sight)
		if next == nil {
			return msg
		}
		switch s := next.Of.(*subscription); need {
		case channel.Judge:
			s.judgeLocked()
		case channel.CatchUp:
			if draws < mostDraws && s.drawLocked() {
				draws++
				continue
			}
			s.catchUpLocked()
		case channel.News:
			return s.listingLocked()
		case channel.End:
			s.endLocked()
		}
	}
}

// directLocked queues an envelope for this connection alone.
func (c *conn) directLocked(p channel.Piece) {
	if !c.out.Direct(p) {
		c.unanswered++
	}
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
