package host

import (
	"slices"

	"tether/ahp"
	"tether/host/rights"
)

// lister is a principal at the host with its view of the catalogue, for all its
// connections and pages. While audiences are not in force, all principals who see
// everything share one. A change costs time only for the listers that see it. Guarded by
// the host's mutex.
type lister struct {
	rights.Viewer
	key       listerKey
	uses      int             // holds
	terminals []*terminal     // the visible ones, by creation
	subs      []*subscription // to the root
	book      rowBook
	round     int64 // the last round of reindexLocked that has visited it
	encoded   [2]struct {
		seq int64
		msg []byte
	} // the envelope of the newest change: in the form since 0.9.0, and the older one
}

// listerKey identifies a view: equal views have equal keys.
type listerKey struct {
	name, owner, guest string
	role               rights.Role
	steward, all       bool // all: sees everything
}

func keyOf(p *rights.Principal) listerKey {
	return listerKey{name: p.Name, owner: p.Owner, role: p.Role, steward: p.Steward}
}

// hold is one use of a lister. When audiences are put in force, the hold gets another
// lister. Guarded by the host's mutex.
type hold struct {
	rights.Viewer
	l *lister
}

// holdLocked begins a use of a lister for a principal. End it with letGoLocked.
func (h *Host) holdLocked(v rights.Viewer) *hold {
	use := &hold{Viewer: v}
	h.holds[use] = struct{}{}
	use.l = h.listerLocked(v)
	return use
}

func (h *Host) letGoLocked(use *hold) {
	if _, ok := h.holds[use]; !ok {
		return
	}
	delete(h.holds, use)
	l := use.l
	if l.uses--; l.uses > 0 {
		return
	}
	delete(h.listers, l.key)
	delete(h.listed.stale, l)
	h.byOwner[l.Owner] = remove(h.byOwner[l.Owner], l)
	if len(h.byOwner[l.Owner]) == 0 {
		delete(h.byOwner, l.Owner)
	}
	for _, t := range l.terminals {
		t.listers = remove(t.listers, l)
	}
}

// listerLocked returns the lister of all who see the same as v, and makes it if there is
// none.
func (h *Host) listerLocked(v rights.Viewer) *lister {
	key := keyOf(&v.Principal)
	switch {
	case v.Guest != "":
		key = listerKey{guest: v.Guest}
	case !h.roster.On && v.May(rights.See):
		key, v = listerKey{all: true}, h.roster.Viewer(rights.Principal{Role: rights.RoleObserver})
	}
	l := h.listers[key]
	if l == nil {
		l = &lister{Viewer: v, key: key, book: rowBook{version: h.rowVersion, gone: tombstones[string]{from: h.rowVersion}}}
		h.listers[key] = l
		h.byOwner[v.Owner] = append(h.byOwner[v.Owner], l)
		for t := range h.everyLocked() {
			if _, ok := l.Sees(t.subject, h.roster); ok {
				l.terminals = append(l.terminals, t)
				t.listers = append(t.listers, l)
			}
		}
	}
	l.uses++
	return l
}

// candidatesLocked calls do with all listers that may see t, and perhaps with others,
// some more than once.
func (h *Host) candidatesLocked(t *terminal, do func(*lister)) {
	owner := &t.creator.principal
	some := func(all []*lister) {
		for _, l := range all {
			do(l)
		}
	}
	for _, key := range []listerKey{keyOf(owner), {all: true}, {guest: t.uri}} {
		if l := h.listers[key]; l != nil {
			do(l)
		}
	}
	some(h.byOwner[owner.Owner])
	if owner.Owner == "" { // it belongs to the administrators, and those may have any owner
		for _, l := range h.listers {
			do(l)
		}
		return
	}
	to := func(g rights.Grantee) {
		switch g.Kind {
		case rights.ToGroup:
			for _, id := range h.roster.Groups[g.Name] {
				some(h.byOwner[id])
			}
		case rights.ToEveryone:
			for _, l := range h.listers {
				do(l)
			}
		default:
			some(h.byOwner[g.ID])
		}
	}
	for i := range t.audience.Grants {
		to(t.audience.Grants[i].To)
	}
	if t.audience.Said.HostGrants {
		for _, g := range h.roster.MachineGrants(owner) {
			to(g)
		}
	}
}

// publishLocked makes what decides who sees t known to the doors. Whoever puts it in
// force for readers that look already advances Host.sight.
func (t *terminal) publishLocked() {
	t.subject = rights.NewSubject(t.uri, &t.creator.principal, &t.audience, t.withdrawn)
}

// reindexLocked is called when the audience of t or the people have changed. It adds t to
// the listers that see it now, and removes it from those that do not see it any more.
func (h *Host) reindexLocked(t *terminal) {
	t.publishLocked()
	h.round += 2
	for _, l := range t.listers {
		l.round = h.round - 1
	}
	var now []*lister
	changed := false
	h.candidatesLocked(t, func(l *lister) {
		if l.round == h.round {
			return
		}
		if _, ok := l.Sees(t.subject, h.roster); !ok {
			return
		}
		if l.round != h.round-1 {
			l.gainLocked(t)
			h.staleLocked(l)
			changed = true
		}
		l.round = h.round
		now = append(now, l)
	})
	for _, l := range t.listers {
		if l.round != h.round {
			h.loseLocked(l, t)
		}
	}
	if t.listers = now; changed {
		t.touch(inRows) // so that it is new for those who see it only now
	}
}

func (l *lister) gainLocked(t *terminal) {
	i, _ := slices.BinarySearchFunc(l.terminals, t.number, func(t *terminal, n int64) int { return int(t.number - n) })
	l.terminals = slices.Insert(l.terminals, i, t)
}

// loseLocked removes t from a lister.
func (h *Host) loseLocked(l *lister, t *terminal) {
	if i, ok := slices.BinarySearchFunc(l.terminals, t.number, func(t *terminal, n int64) int { return int(t.number - n) }); ok {
		l.terminals = slices.Delete(l.terminals, i, i+1)
	}
	l.book.goneLocked(t.id, h.nextRowLocked())
	h.staleLocked(l)
}

// infosLocked returns the catalogue as AHP shows it.
func (l *lister) infosLocked() []ahp.TerminalInfo { return infosOf(l.terminals) }
