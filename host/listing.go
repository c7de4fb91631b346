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
	of.listed = h.listed.changed
	h.rowsChangedLocked()
	for _, s := range h.root.subs {
		if own := s.conn.ownLocked(); own == nil || own == of {
			s.noticeLocked()
		}
	}
}

// ownLocked is the client whose terminals alone the connection sees; nil if it sees all.
func (c *conn) ownLocked() *client {
	if c.may(rightSee) {
		return nil
	}
	return c.client
}

// changedLocked is the serverSeq of the newest change of the catalogue that the subscriber sees.
func (s *subscription) changedLocked() int64 {
	if own := s.conn.ownLocked(); own != nil {
		return own.listed
	}
	return s.conn.h.listed.changed
}

// listingLocked is root/terminalsChanged for the connection.
func (c *conn) listingLocked() []byte {
	own := c.ownLocked()
	if own == nil {
		return c.h.listed.envelopeLocked(c.h, c.client.old())
	}
	action := ahp.RootTerminalsChanged{Terminals: c.h.infosLocked(own)}
	return appendEnvelope(nil, ahp.RootURI, own.listed, nil, "", ahp.AppendActionFor(nil, action, own.version))
}

// envelopeLocked is root/terminalsChanged with the present catalogue, encoded once per change and shape.
func (l *listing) envelopeLocked(h *Host, old bool) []byte {
	shape := &l.encoded[0]
	version := newestVersion
	if old {
		shape, version = &l.encoded[1], oldestVersion
	}
	if shape.seq != l.changed || shape.msg == nil {
		action := ahp.RootTerminalsChanged{Terminals: h.infosLocked(nil)}
		shape.seq = l.changed
		shape.msg = appendEnvelope(nil, ahp.RootURI, l.changed, nil, "", ahp.AppendActionFor(nil, action, version))
	}
	return shape.msg
}

// infosLocked is the catalogue: of one client's terminals, or of all.
func (h *Host) infosLocked(own *client) []ahp.TerminalInfo {
	infos := make([]ahp.TerminalInfo, 0, len(h.order))
	for _, t := range h.order {
		if own != nil && t.creator != own {
			continue
		}
		infos = append(infos, ahp.TerminalInfo{Resource: t.uri, Title: t.state.Title, Claim: t.state.Claim,
			Lifecycle: t.state.Lifecycle, ExecutionTarget: t.state.ExecutionTarget,
			Meta: ahp.TerminalMeta{Former: t.state.Meta.Former}})
	}
	return infos
}
