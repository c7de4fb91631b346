package host

import (
	"net/http"

	"tether/ahp"
)

// serveState serves /terminals/ID/state, and guests theirs: a terminal in the form in which AHP shows it. The page reads parked ones there,
// which AHP does not know.
func (h *Host) serveState(w http.ResponseWriter, r *http.Request, p Principal, at lookedAt) *refusal {
	i, sending := at.Info(), &h.messages.sending
	n := int(min(2*(i.End-i.Start)+64<<10, int64(sending.part))) // escaped, and the screen before it
	if sending.take(r.Context(), p.Name, n) != nil {
		return errClientGone
	}
	defer sending.give(p.Name, n) // when it has been read
	s, ok := at.state(n)
	if !ok {
		return errNoTerminal
	}
	h.audit(AuditSubscribed, remote{name: r.RemoteAddr, principal: p}, AuditEvent{Terminal: s.uri, Detail: "the page"})
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(s.append(nil)) // fails only with the connection
	return nil
}

// state is the terminal now, with at most about limit bytes of text; ok is false if the principal does not see it any more.
func (l lookedAt) state(limit int) (s snapshot, ok bool) {
	h, t := l.h, l.t
	h.mu.Lock()
	defer h.mu.Unlock()
	since, ok := catalogue{h, l.p}.fromLocked(t)
	if !ok || t.gone() {
		return s, false
	}
	s = snapshot{uri: t.uri, seq: h.seq, version: ahp.Versions()[0], state: t.state}
	var from int64
	if s.parts, from = t.content.viewSince(min(limit, maxSnapshots), since); since > t.content.base { // what was before is not to be seen
		s.state.Meta.Screen = t.unknownScreenLocked()
	} else {
		s.state.Meta.Screen = t.snapScreenLocked(from)
	}
	return s, true
}
