package host

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"tether/ahp"
	"tether/host/rights"
	"tether/host/runs"
	"tether/host/terminals"
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
	v := h.terminals.Roster.Viewer(q.Principal())
	withdrawn := map[*terminals.Client][]rights.Grantee{}
	var about *terminals.Client
	for t := range h.terminals.Every() {
		withdrawn[t.Creator] = append(withdrawn[t.Creator], t.Withdrawn...)
		if q.Terminal != "" && t.URI == q.Terminal {
			if _, ok := v.Sees(t.Subject, h.terminals.Roster); ok {
				about = t.Creator
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(h.terminals.Clients)) {
		cl := h.terminals.Clients[id]
		if cl.Link == nil || cl.Link.Closing() || !cl.Runs || q.Terminal != "" && cl != about {
			continue
		}
		all = append(all, runs.Machine{ID: id, Name: cl.Machine(), Peer: connOf(cl).peer, Reader: h.readerLocked(&v, &cl.Who, withdrawn[cl])})
	}
	return all
}

// Away implements runs.Machines.
func (m runsMachines) Away(q *runs.Question) (away []string) {
	h := m.h
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.terminals.Roster.Viewer(q.Principal())
	for t := range h.terminals.Every() {
		if name := t.Creator.Machine(); t.IsAway() && !slices.Contains(away, name) {
			if _, ok := v.Sees(t.Subject, h.terminals.Roster); ok {
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
		add(h.terminals.Roster.NameOf(g), g)
	}
	r.Owner = !h.terminals.Roster.On || v.Belongs(owner.Owner)
	return r
}

// CallRuns implements agenttools.FarKeeper.
func (w agentView) CallRuns(ctx context.Context, tool string, args json.RawMessage, shows int) (any, error) {
	w.h.audit(rights.AuditCalled, remote{principal: w.P}, rights.AuditEvent{Detail: tool})
	return w.h.runs.CallFor(ctx, w.P, runs.Question{Tool: tool, Args: args, Shows: shows})
}
