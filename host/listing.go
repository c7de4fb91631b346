package host

import (
	"time"

	"tether/ahp"
)

// listPace is the shortest time between two changes of the catalogue that are told: a machine that changes titles as fast as it can costs
// nobody a list each time.
const listPace = 50 * time.Millisecond

// listing is the catalogue as the root channel shows it. It is delivered as state: whoever is due a change gets the
// newest, so a thousand terminals that come at once are not a thousand lists for everybody. Guarded by the host's mutex.
type listing struct {
	changed int64 // serverSeq of the newest change that was told
	told    time.Time
	stale   map[lister]struct{} // whose terminals have changed since
	timer   *time.Timer         // tells of that; nil when none runs
	encoded [2]struct {
		seq int64
		msg []byte
	} // the envelope of the newest change: as it is since 0.9.0, and before
}

// lister is who sees a part of the catalogue that is its own.
type lister struct {
	name string
	role Role
}

// listChangedLocked says that what the catalogue shows of a client's terminals has changed. Subscribers are told at once, or with what
// else changes within listPace.
func (h *Host) listChangedLocked(of *client) {
	l := &h.listed
	if l.stale == nil {
		l.stale = make(map[lister]struct{})
	}
	l.stale[lister{of.principal.Name, of.principal.Role}] = struct{}{}
	switch wait := listPace - time.Since(l.told); {
	case l.timer != nil:
	case wait <= 0:
		h.tellListLocked()
	default:
		l.timer = time.AfterFunc(wait, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			if l.timer != nil && !h.closed {
				h.tellListLocked()
			}
		})
	}
}

// listNowLocked tells at once of what would be told soon: who comes back is told what has changed up to now.
func (h *Host) listNowLocked() {
	if t := h.listed.timer; t != nil {
		t.Stop()
		h.tellListLocked()
	}
}

// tellListLocked lets those know of what has changed who see it.
func (h *Host) tellListLocked() {
	l := &h.listed
	l.changed, l.told, l.timer = h.nextSeqLocked(), time.Now(), nil
	for _, s := range h.root.subs {
		p := s.conn.remote.principal
		if _, own := l.stale[lister{p.Name, p.Role}]; own || p.may(rightSee) {
			s.changed = l.changed
			s.noticeLocked()
		}
	}
	clear(l.stale)
}

// listingLocked is root/terminalsChanged for the subscriber, as of s.changed.
func (s *subscription) listingLocked() []byte {
	c := s.conn
	if c.may(rightSee) {
		return c.h.listed.envelopeLocked(c.h, c.client.old())
	}
	action := ahp.RootTerminalsChanged{Terminals: c.infosLocked()}
	return ahp.AppendEnvelope(nil, ahp.RootURI, s.changed, nil, "", ahp.AppendActionFor(nil, action, c.client.version))
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
		shape.msg = ahp.AppendEnvelope(nil, ahp.RootURI, l.changed, nil, "", ahp.AppendActionFor(nil, action, version))
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
