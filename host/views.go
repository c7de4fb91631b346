package host

import (
	"tether/ahp"
	"tether/host/channel"
	"tether/host/terminals"
)

// terminalLocked returns the terminal with that URI, or nil if c sees none: one that it
// may not see is answered as one that does not exist.
func (c *conn) terminalLocked(uri string) *terminals.Terminal {
	if t := c.h.terminals.ByURI[uri]; t != nil && c.link.Sees(t) {
		return t
	}
	return nil
}

// showsLocked reports whether c sees the channel of a subscription.
func (c *conn) showsLocked(s *subscription) bool {
	switch {
	case s.withdrawn:
		return false
	case s.term != nil:
		return c.link.Sees(s.term)
	}
	return s.session == nil || s.session.Sees(c, s.ch.URI())
}

// Withdraw implements terminals.Subscriber. It tells the subscriber that the terminal has
// ended, as when a machine withdraws it.
func (s *subscription) Withdraw() {
	c, t := s.conn, s.term
	s.withdrawn = true
	shown := s.Started()
	s.endLocked()
	if shown && !t.State.Lifecycle.Exited() {
		a := ahp.TerminalExited{}
		if c.link.Client.Old() {
			a.ExitCode = &terminals.NoCode
		}
		seq := c.h.envelopes.Next()
		c.Tell(channel.Piece{Seq: seq, Msg: ahp.AppendEnvelope(nil, t.URI, seq, nil, "", ahp.AppendActionFor(nil, a, c.link.Client.Version))})
	}
}
