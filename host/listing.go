package host

import (
	"time"

	"tether/ahp"
)

// listPace is the shortest time between two notifications of changes of the catalogue, so
// that a machine that changes titles as fast as it can does not cause a list each time.
const listPace = 50 * time.Millisecond

// listing schedules updates of the catalogue on the root channel. It is delivered as
// state: a subscriber gets the newest list, so that a thousand new terminals at once do
// not make a thousand lists for everybody. Guarded by the host's mutex.
type listing struct {
	changed int64 // serverSeq of the newest notified change
	told    time.Time
	stale   map[*lister]struct{} // listers whose view has changed since
	timer   *time.Timer          // sends the changes; nil if not running
}

// whereShown says which lists show a change of a terminal.
type whereShown int

const (
	inRows      whereShown = iota // the rows of pages, what agents list, what other nodes are told
	inCatalogue                   // these and AHP's catalogue
)

// touch records that t has changed, and wakes those who wait for changes of a list that
// shows it: they ask for what is newer than their version. Subscribers of AHP's catalogue
// are told at once, or together with other changes within listPace.
func (t *terminal) touch(where whereShown) {
	if t.gone() {
		return
	}
	h := t.host
	t.rowVersion = h.nextRowLocked()
	for _, l := range t.listers {
		l.book.changedLocked(t.rowVersion)
		if where == inCatalogue {
			h.listed.stale[l] = struct{}{}
		}
	}
	h.nodes.moved.Raise()
	if where == inCatalogue {
		h.tellSoonLocked()
	}
}

// touchPresence is touch after the owner of t, or its node, has come or gone: then AHP's
// catalogue shows or hides what the owner has reported.
func (t *terminal) touchPresence() {
	if ahp.Awaits(string(t.input.Input)) != ahp.AwaitsNothing || t.input.Ready != "" {
		t.touch(inCatalogue)
	} else {
		t.touch(inRows)
	}
}

// staleLocked records that the view of a lister has changed.
func (h *Host) staleLocked(of *lister) {
	h.listed.stale[of] = struct{}{}
	h.tellSoonLocked()
}

func (h *Host) tellSoonLocked() {
	l := &h.listed
	switch wait := listPace - time.Since(l.told); {
	case l.timer != nil:
	case wait <= 0:
		h.tellListLocked()
	default:
		h.afterLocked(&l.timer, wait, h.tellListLocked)
	}
}

// listNowLocked sends pending changes at once, so that a returning client gets all
// changes up to now.
func (h *Host) listNowLocked() {
	if t := h.listed.timer; t != nil {
		t.Stop()
		h.tellListLocked()
	}
}

// tellListLocked notifies those who see the changes.
func (h *Host) tellListLocked() {
	l := &h.listed
	l.changed, l.told, l.timer = h.envelopes.Next(), time.Now(), nil
	for of := range l.stale {
		for _, s := range of.subs {
			s.News(l.changed)
		}
	}
	clear(l.stale)
}

// listingLocked returns the root/terminalsChanged for the subscriber, as of its news:
// the present catalogue, encoded once per change and form.
func (s *subscription) listingLocked() []byte {
	of := s.conn.hold.l
	shape, version := &of.encoded[0], newestVersion
	if s.conn.client.old() {
		shape, version = &of.encoded[1], oldestVersion
	}
	if shape.seq != s.Changed() || shape.msg == nil {
		action := ahp.RootTerminalsChanged{Terminals: of.infosLocked()}
		shape.seq = s.Changed()
		shape.msg = ahp.AppendEnvelope(nil, ahp.RootURI, s.Changed(), nil, "", ahp.AppendActionFor(nil, action, version))
	}
	return shape.msg
}

func infosOf(terminals []*terminal) []ahp.TerminalInfo {
	infos := make([]ahp.TerminalInfo, 0, len(terminals))
	for _, t := range terminals {
		if t.parked() != nil { // parked terminals are not in AHP's catalogue
			continue
		}
		infos = append(infos, ahp.TerminalInfo{Resource: t.uri, Title: t.state.Title, Claim: t.state.Claim,
			Lifecycle: t.state.Lifecycle, ExecutionTarget: t.state.ExecutionTarget,
			Meta: ahp.TerminalMeta{Former: t.state.Meta.Former, Adopted: t.state.Meta.Adopted, Picture: t.state.Meta.Picture, Ports: t.state.Meta.Ports, Awaits: t.awaitsLocked(), Ready: ahp.ReadinessOf(t.readyLocked())}})
	}
	return infos
}
