package host

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"tether/ahp"
	"tether/host/rights"
	"tether/host/runs"
)

// Earlier runs of lent terminals: package runs asks their machines. This file decides
// which machines a reader may ask, and who the reader is for them.

// runsMachines implements runs.Machines.
type runsMachines struct{ h *Host }

// Asked implements runs.Machines.
func (m runsMachines) Asked(q *runs.Question) (all []runs.Machine) {
	h := m.h
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.roster.Viewer(q.Principal())
	withdrawn := map[*client][]rights.Grantee{}
	var about *client
	for t := range h.everyLocked() {
		withdrawn[t.creator] = append(withdrawn[t.creator], t.withdrawn...)
		if q.Terminal != "" && t.uri == q.Terminal {
			if _, ok := v.Sees(t.subject, h.roster); ok {
				about = t.creator
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(h.clients)) {
		cl := h.clients[id]
		if cl.conn == nil || cl.conn.closing || !cl.runs || q.Terminal != "" && cl != about {
			continue
		}
		all = append(all, runs.Machine{ID: id, Name: cl.Machine(), Peer: cl.conn.peer, Reader: h.readerLocked(&v, &cl.principal, withdrawn[cl])})
	}
	return all
}

// Away implements runs.Machines.
func (m runsMachines) Away(q *runs.Question) (away []string) {
	h := m.h
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.roster.Viewer(q.Principal())
	for t := range h.everyLocked() {
		if name := t.creator.Machine(); t.isAway() && !slices.Contains(away, name) {
			if _, ok := v.Sees(t.subject, h.roster); ok {
				away = append(away, name)
			}
		}
	}
	slices.Sort(away)
	return away
}

// readerLocked returns v in the words of the grants of a machine.
func (h *Host) readerLocked(v *rights.Viewer, owner *rights.Principal, withdrawn []rights.Grantee) (r ahp.Reader) {
	add := func(name string, g rights.Grantee) {
		if name != "" && len(r.Names) < ahp.MaxReaderNames && !slices.Contains(withdrawn, g) && (ahp.Reader{Names: []string{name}}).Validate() == nil {
			r.Names = append(r.Names, name)
		}
	}
	for g := range v.Grantees() {
		add(h.roster.NameOf(g), g)
	}
	r.Owner = !h.roster.On || v.Belongs(owner.Owner)
	return r
}

// CallRuns implements agenttools.FarKeeper.
func (w *watched) CallRuns(ctx context.Context, tool string, args json.RawMessage, shows int) (any, error) {
	w.h.audit(rights.AuditCalled, remote{principal: w.p}, rights.AuditEvent{Detail: tool})
	return w.h.runs.CallFor(ctx, w.p, runs.Question{Tool: tool, Args: args, Shows: shows})
}
