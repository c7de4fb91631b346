package host

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"tether/ahp"
	"tether/host/rights"
	"tether/host/runs"
)

// Earlier runs of lent terminals: package runs asks their machines. This file decides
// which machines a reader may ask, and who the reader is for them.

var errNoGuest = errors.New("guests see what runs now, and no earlier runs")

// runsMachines implements runs.Machines.
type runsMachines struct{ h *Host }

// readerOf returns the principal that asks.
func readerOf(q *runs.Question) rights.Principal {
	p := q.Reader.Principal()
	p.Steward = q.Steward
	return p
}

// Asked implements runs.Machines.
func (m runsMachines) Asked(q *runs.Question) (all []runs.Machine) {
	h := m.h
	h.mu.Lock()
	defer h.mu.Unlock()
	v := h.roster.Viewer(readerOf(q))
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
	v := h.roster.Viewer(readerOf(q))
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

// AnswerRuns answers another node's question about earlier runs.
func (h *Host) AnswerRuns(ctx context.Context, question []byte) []byte {
	return h.runs.AnswerNode(ctx, question)
}

// CallRuns implements agenttools.FarKeeper.
func (w *watched) CallRuns(ctx context.Context, tool string, args json.RawMessage, shows int) (any, error) {
	w.h.audit(rights.AuditCalled, remote{principal: w.p}, rights.AuditEvent{Detail: tool})
	return w.h.callRuns(ctx, w.p, runs.Question{Tool: tool, Args: args, Shows: shows})
}

// callRuns carries out a call of a tool of runs for a principal.
func (h *Host) callRuns(ctx context.Context, p rights.Principal, q runs.Question) (any, error) {
	if p.Guest != "" || !p.May(rights.See) {
		return nil, errNoGuest
	}
	q.Reader, q.Steward = p.Named(), p.Steward
	return h.runs.Call(ctx, q)
}
