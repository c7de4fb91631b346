package host

import (
	"context"
	"slices"
	"time"

	"tether/host/rights"
	"tether/internal/retry"
)

// lookEvery is how often the host checks the people for changes. After a change, somebody
// may see a terminal that they may not see any more for at most this long.
const lookEvery = time.Second

// every calls do at that interval until the host closes.
func (h *Host) every(interval time.Duration, do func()) {
	for retry.Wait(h.ctx, interval) {
		do()
	}
}

// lookAtPeople reads the people, and returns them.
func (h *Host) lookAtPeople() *rights.Roster {
	if h.opts.People == nil {
		return &rights.Roster{}
	}
	h.looking.Lock() // so that the later of two reads is applied last
	defer h.looking.Unlock()
	r := h.opts.People.Look()
	h.mu.Lock()
	defer h.mu.Unlock()
	if r != h.roster.Roster {
		h.knowLocked(r)
	}
	return r
}

// knowLocked applies another roster, and ends the views of those who do not see a
// terminal any more.
func (h *Host) knowLocked(r *rights.Roster) {
	before := h.roster
	h.roster = rights.NewDirectory(r)
	h.sight++
	for use := range h.holds {
		use.Viewer = h.roster.Viewer(use.Principal)
		if !use.l.key.all {
			use.l.Viewer = use.Viewer
		}
	}
	if before.On != r.On {
		h.regroupLocked()
	}
	for t := range h.everyLocked() {
		t.audience.Grants = slices.DeleteFunc(t.audience.Grants, func(g rights.Grant) bool { return r.Ended(g.To) })
		h.reindexLocked(t)
		h.recheckLocked(t)
		t.watchersLocked()
		if h.opts.Nodes != nil {
			h.endWithdrawnLocked(t)
		}
	}
}

// endWithdrawnLocked ends grants that an administrator has ended at another node.
func (h *Host) endWithdrawnLocked(t *terminal) {
	more := slices.DeleteFunc(slices.Clone(h.roster.Withdrawn[t.uri]), func(g rights.Grantee) bool { return slices.Contains(t.withdrawn, g) })
	if len(more) > 0 {
		t.withdrawn = append(t.withdrawn, more...)
		h.setAudienceLocked(t, t.audience)
		t.touch(inRows)
	}
}

// regroupLocked gives everybody another lister and closes all connections, because views
// and the marker have changed.
func (h *Host) regroupLocked() {
	h.listers, h.byOwner = map[listerKey]*lister{}, map[string][]*lister{}
	clear(h.listed.stale)
	h.nextRowLocked() // so that pages with the former lister get the whole list
	for t := range h.everyLocked() {
		t.listers = nil
		t.audience.Unsaid = !h.roster.On && t.remote() // until the terminal is announced again
		if m := t.mirror(); m != nil {
			t.audience.Unsaid = h.mirrorUnsaidLocked(m)
		}
		t.publishLocked()
	}
	for use := range h.holds {
		use.l.book.moved.Raise()
		use.l = h.listerLocked(use.Viewer)
	}
	for _, of := range h.root.Subscriptions() {
		s := of.Of.(*subscription)
		s.conn.hold.l.subs = append(s.conn.hold.l.subs, s)
	}
	for _, cl := range h.clients {
		cl.anew = true
	}
	for c := range h.conns {
		for _, s := range c.subs {
			if !c.showsLocked(s) {
				s.withdrawn = true
				s.endLocked()
			}
		}
		c.closeLocked(closeGoingAway, "who sees what has changed: connect again")
	}
	h.callers.ToolsChanged()
}

// Lasting is rights.Names.Lasting.
func (h *Host) Lasting(p rights.Principal) context.Context { return h.names.Lasting(p) }

// ownedAnewLocked is called when a client connects as p, which may have another owner
// than before.
func (h *Host) ownedAnewLocked(cl *client, p rights.Principal) {
	if cl.principal.Owner == p.Owner {
		cl.principal = p
		return
	}
	cl.principal, cl.anew = p, true
	h.sight++
	for t := range h.everyLocked() {
		if t.creator == cl {
			t.audience.Grants = nil // its new owner sets its audience
			h.reindexLocked(t)
			h.recheckLocked(t)
		}
	}
}
