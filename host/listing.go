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

// listChangedLocked says that what the catalogue shows has changed.
func (h *Host) listChangedLocked() {
	h.listed.changed = h.nextSeqLocked()
	for _, s := range h.root.subs {
		s.noticeLocked()
	}
}

// envelopeLocked is root/terminalsChanged with the present catalogue, encoded once per change and shape.
func (l *listing) envelopeLocked(h *Host, old bool) []byte {
	shape := &l.encoded[0]
	version := newestVersion
	if old {
		shape, version = &l.encoded[1], oldestVersion
	}
	if shape.seq != l.changed || shape.msg == nil {
		action := ahp.RootTerminalsChanged{Terminals: h.infosLocked()}
		shape.seq = l.changed
		shape.msg = appendEnvelope(nil, ahp.RootURI, l.changed, nil, "", ahp.AppendActionFor(nil, action, version))
	}
	return shape.msg
}

func (h *Host) infosLocked() []ahp.TerminalInfo {
	infos := make([]ahp.TerminalInfo, len(h.order))
	for i, t := range h.order {
		infos[i] = ahp.TerminalInfo{Resource: t.uri, Title: t.state.Title, Claim: t.state.Claim,
			Lifecycle: t.state.Lifecycle, ExecutionTarget: t.state.ExecutionTarget,
			Meta: ahp.TerminalMeta{Former: t.state.Meta.Former}}
	}
	return infos
}
