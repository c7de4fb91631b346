package terminals

import (
	"slices"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/rights"
)

// Lister is a principal at the host with its view of the catalogue, for all its
// connections and pages. While audiences are not in force, all principals who see
// everything share one. A change costs time only for the listers that see it.
type Lister struct {
	rights.Viewer
	key       listerKey
	uses      int                     // holds
	Terminals []*Terminal             // the visible ones, by creation
	subs      []*channel.Subscription // to the root
	book      rowBook
	round     int64 // the last round of reindex that has visited it
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

// Hold is one use of a lister. When audiences are put in force, the hold gets another
// lister.
type Hold struct {
	rights.Viewer
	Lister *Lister
}

// Hold begins a use of a lister for a principal. End it with LetGo.
func (b *Book) Hold(v rights.Viewer) *Hold {
	use := &Hold{Viewer: v}
	b.holds[use] = struct{}{}
	use.Lister = b.lister(v)
	return use
}

// LetGo ends what Hold has begun; later calls do nothing.
func (b *Book) LetGo(use *Hold) {
	if _, ok := b.holds[use]; !ok {
		return
	}
	delete(b.holds, use)
	l := use.Lister
	if l.uses--; l.uses > 0 {
		return
	}
	delete(b.listers, l.key)
	delete(b.news.stale, l)
	b.byOwner[l.Owner] = slices.DeleteFunc(b.byOwner[l.Owner], func(o *Lister) bool { return o == l })
	if len(b.byOwner[l.Owner]) == 0 {
		delete(b.byOwner, l.Owner)
	}
	for _, t := range l.Terminals {
		t.listers = slices.DeleteFunc(t.listers, func(o *Lister) bool { return o == l })
	}
}

// lister returns the lister of all who see the same as v, and makes it if there is
// none.
func (b *Book) lister(v rights.Viewer) *Lister {
	key := keyOf(&v.Principal)
	switch {
	case v.Guest != "":
		key = listerKey{guest: v.Guest}
	case !b.Roster.On && v.May(rights.See):
		key, v = listerKey{all: true}, b.Roster.Viewer(rights.Principal{Role: rights.RoleObserver})
	}
	l := b.listers[key]
	if l == nil {
		l = &Lister{Viewer: v, key: key, book: rowBook{version: b.rowVersion, gone: tombstones[string]{from: b.rowVersion}}}
		b.listers[key] = l
		b.byOwner[v.Owner] = append(b.byOwner[v.Owner], l)
		for t := range b.Every() {
			if _, ok := l.Sees(t.Subject, b.Roster); ok {
				l.Terminals = append(l.Terminals, t)
				t.listers = append(t.listers, l)
			}
		}
	}
	l.uses++
	return l
}

// candidates calls do with all listers that may see t, and perhaps with others, some
// more than once.
func (b *Book) candidates(t *Terminal, do func(*Lister)) {
	owner := &t.Creator.Who
	some := func(all []*Lister) {
		for _, l := range all {
			do(l)
		}
	}
	for _, key := range []listerKey{keyOf(owner), {all: true}, {guest: t.URI}} {
		if l := b.listers[key]; l != nil {
			do(l)
		}
	}
	some(b.byOwner[owner.Owner])
	if owner.Owner == "" { // it belongs to the administrators, and those may have any owner
		for _, l := range b.listers {
			do(l)
		}
		return
	}
	to := func(g rights.Grantee) {
		switch g.Kind {
		case rights.ToGroup:
			for _, id := range b.Roster.Groups[g.Name] {
				some(b.byOwner[id])
			}
		case rights.ToEveryone:
			for _, l := range b.listers {
				do(l)
			}
		default:
			some(b.byOwner[g.ID])
		}
	}
	for i := range t.audience.Grants {
		to(t.audience.Grants[i].To)
	}
	if t.audience.Said.HostGrants {
		for _, g := range b.Roster.MachineGrants(owner) {
			to(g)
		}
	}
}

// publish makes what decides who sees t known to the doors. Whoever puts it in force
// for readers that look already advances Book.Sight.
func (t *Terminal) publish() {
	t.Subject = rights.NewSubject(t.URI, &t.Creator.Who, &t.audience, t.Withdrawn)
}

// reindex is called when the audience of t or the people have changed. It adds t to
// the listers that see it now, and removes it from those that do not see it any more.
func (b *Book) reindex(t *Terminal) {
	t.publish()
	b.round += 2
	for _, l := range t.listers {
		l.round = b.round - 1
	}
	var now []*Lister
	changed := false
	b.candidates(t, func(l *Lister) {
		if l.round == b.round {
			return
		}
		if _, ok := l.Sees(t.Subject, b.Roster); !ok {
			return
		}
		if l.round != b.round-1 {
			l.gain(t)
			b.stale(l)
			changed = true
		}
		l.round = b.round
		now = append(now, l)
	})
	for _, l := range t.listers {
		if l.round != b.round {
			b.lose(l, t)
		}
	}
	if t.listers = now; changed {
		t.touch(inRows) // so that it is new for those who see it only now
	}
}

func (l *Lister) gain(t *Terminal) {
	i, _ := slices.BinarySearchFunc(l.Terminals, t.number, func(t *Terminal, n int64) int { return int(t.number - n) })
	l.Terminals = slices.Insert(l.Terminals, i, t)
}

// lose removes t from a lister.
func (b *Book) lose(l *Lister, t *Terminal) {
	if i, ok := slices.BinarySearchFunc(l.Terminals, t.number, func(t *Terminal, n int64) int { return int(t.number - n) }); ok {
		l.Terminals = slices.Delete(l.Terminals, i, i+1)
	}
	l.book.noteGone(t.ID, b.nextRow())
	b.stale(l)
}

// FollowList has a subscription to the root told of changes of the list.
func (b *Book) FollowList(use *Hold, s *channel.Subscription) {
	s.News(b.news.changed)
	use.Lister.subs = append(use.Lister.subs, s)
}

// UnfollowList ends that.
func (b *Book) UnfollowList(use *Hold, s *channel.Subscription) {
	use.Lister.subs = slices.DeleteFunc(use.Lister.subs, func(o *channel.Subscription) bool { return o == s })
}

// Infos returns the catalogue as AHP shows it.
func (l *Lister) Infos() []ahp.TerminalInfo { return infosOf(l.Terminals) }
