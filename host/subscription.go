package host

import (
	"time"

	"tether/host/channel"
	"tether/host/sessions"
	"tether/host/terminals"
)

// topic is a channel and what it is about: a terminal, a session, or neither for the
// root.
type topic struct {
	ch      *channel.Channel // nil: there is no such channel
	term    *terminals.Terminal
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
		s.Subscription = to.ch.Subscribe(c.link.Out, s)
		s.judgeLocked()
		c.subs[to.ch.URI()] = s
		if s.isRoot() {
			c.h.terminals.FollowList(c.link.Hold, s.Subscription)
		}
		if s.term != nil {
			s.term.Joined()
		}
	}
	return s
}

// Link implements Subscriber.
func (s *subscription) Link() *terminals.Link { return &s.conn.link }

// Since implements Subscriber.
func (s *subscription) Since() time.Time { return s.since }

// judgeLocked tells the subscription what its subscriber may see at present.
func (s *subscription) judgeLocked() {
	var from int64
	all := false
	switch {
	case s.term != nil:
		from = s.conn.link.From(s.term)
	case s.session != nil:
		all = s.session.Open(s.conn)
	}
	s.Judge(from, all, s.conn.h.terminals.Sight)
}

// start makes deliveries begin after the present state.
func (s *subscription) startLocked() {
	var end int64
	if s.term != nil {
		end = s.term.Out.End()
	}
	s.Start(end)
}

// endLocked removes the subscription from its channel and its connection.
func (s *subscription) endLocked() {
	if uri := s.ch.URI(); s.conn.subs[uri] == s {
		delete(s.conn.subs, uri)
	}
	if s.isRoot() {
		s.conn.h.terminals.UnfollowList(s.conn.link.Hold, s.Subscription)
	}
	s.End()
	if s.term != nil {
		s.term.Left()
	}
}

// nextDataLocked returns the connection's next envelope, or nil. It may release the
// host's mutex meanwhile.
func (c *conn) nextDataLocked() []byte {
	for draws := 0; ; {
		msg, next, need := c.link.Out.Next(c.h.terminals.Sight)
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
			return s.listing()
		case channel.End:
			s.endLocked()
		}
	}
}

// Tell implements Conn: it queues an envelope for this connection alone.
func (c *conn) Tell(p channel.Piece) {
	if !c.link.Out.Direct(p) {
		c.unanswered++
	}
}

// listing returns the root/terminalsChanged for the subscriber, as of its news:
// the present catalogue, encoded once per change and form.
func (s *subscription) listing() []byte {
	return s.conn.link.Hold.Lister.Listing(s.Changed(), s.conn.link.Client.Old())
}
