package host

import (
	"tether/ahp"
)

// listing is the catalogue as the root channel shows it. It is delivered as state: whoever is due a change gets the
// newest, so a thousand terminals that come at once are not a thousand lists for everybody. Guarded by the host's mutex.
type listing struct {
	changed int64 // serverSeq of the newest change
	encoded [2]struct {
		seq int64
		msg []byte
	} // the envelope of the newest change: as it is since 0.9.0, and before
}

// listChangedLocked says that what the catalogue shows of a client's terminals has changed.
func (h *Host) listChangedLocked(of *client) {
	h.listed.changed = h.nextSeqLocked()
	for _, s := range h.root.subs {
		if s.conn.seesOfLocked(of) {
			s.changed = h.listed.changed
			s.noticeLocked()
		}
	}
}

// listingLocked is root/terminalsChanged for the subscriber, as of s.changed.
func (s *subscription) listingLocked() []byte {
	c := s.conn
	if c.may(rightSee) {
		return c.h.listed.envelopeLocked(c.h, c.client.old())
	}
	action := ahp.RootTerminalsChanged{Terminals: c.infosLocked()}
	return appendEnvelope(nil, ahp.RootURI, s.changed, nil, "", ahp.AppendActionFor(nil, action, c.client.version))
}

// envelopeLocked is root/terminalsChanged with the present catalogue, encoded once per change and shape.
func (l *listing) envelopeLocked(h *Host, old bool) []byte {
	shape := &l.encoded[0]
	version := newestVersion
	if old {
		shape, version = &l.encoded[1], oldestVersion
	}
	if shape.seq != l.changed || shape.msg == nil {
		action := ahp.RootTerminalsChanged{Terminals: infosOf(h.order)}
		shape.seq = l.changed
		shape.msg = appendEnvelope(nil, ahp.RootURI, l.changed, nil, "", ahp.AppendActionFor(nil, action, version))
	}
	return shape.msg
}

// infosLocked is the catalogue as the connection may see it.
func (c *conn) infosLocked() []ahp.TerminalInfo {
	if c.may(rightSee) {
		return infosOf(c.h.order)
	}
	var own []*terminal
	for _, t := range c.h.order {
		if c.seesLocked(t) {
			own = append(own, t)
		}
	}
	return infosOf(own)
}

func infosOf(terminals []*terminal) []ahp.TerminalInfo {
	infos := make([]ahp.TerminalInfo, 0, len(terminals))
	for _, t := range terminals {
		infos = append(infos, ahp.TerminalInfo{Resource: t.uri, Title: t.state.Title, Claim: t.state.Claim,
			Lifecycle: t.state.Lifecycle, ExecutionTarget: t.state.ExecutionTarget,
			Meta: ahp.TerminalMeta{Former: t.state.Meta.Former}})
	}
	return infos
}
