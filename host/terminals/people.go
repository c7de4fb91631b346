package terminals

import (
	"slices"
	"time"

	"tether/host/rights"
)

// LookEvery is how often the host checks the people for changes. After a change, somebody
// may see a terminal that they may not see any more for at most this long.
const LookEvery = time.Second

// LookAtPeople reads the people, and returns them. It takes the lock.
func (b *Book) LookAtPeople() *rights.Roster {
	if b.opts.People == nil {
		return &rights.Roster{}
	}
	b.looking.Lock() // so that the later of two reads is applied last
	defer b.looking.Unlock()
	r := b.opts.People.Look()
	b.mu.Lock()
	defer b.mu.Unlock()
	if r != b.Roster.Roster {
		b.know(r)
	}
	return r
}

// know applies another roster, and ends the views of those who do not see a terminal
// any more.
func (b *Book) know(r *rights.Roster) {
	before := b.Roster
	b.Roster = rights.NewDirectory(r)
	b.Sight++
	for use := range b.holds {
		use.Viewer = b.Roster.Viewer(use.Principal)
		if !use.Lister.key.all {
			use.Lister.Viewer = use.Viewer
		}
	}
	if before.On != r.On {
		b.regroup()
	}
	for t := range b.Every() {
		t.audience.Grants = slices.DeleteFunc(t.audience.Grants, func(g rights.Grant) bool { return r.Ended(g.To) })
		b.reindex(t)
		b.recheck(t)
		t.sayWatchers()
		if b.opts.Nodes {
			b.endWithdrawn(t)
		}
	}
}

// endWithdrawn ends grants that an administrator has ended at another node.
func (b *Book) endWithdrawn(t *Terminal) {
	more := slices.DeleteFunc(slices.Clone(b.Roster.Withdrawn[t.URI]), func(g rights.Grantee) bool { return slices.Contains(t.Withdrawn, g) })
	if len(more) > 0 {
		t.Withdrawn = append(t.Withdrawn, more...)
		b.SetAudience(t, t.audience)
		t.touch(inRows)
	}
}

// regroup gives everybody another lister and closes all connections, because views
// and the marker have changed.
func (b *Book) regroup() {
	b.listers, b.byOwner = map[listerKey]*Lister{}, map[string][]*Lister{}
	clear(b.news.stale)
	b.nextRow() // so that pages with the former lister get the whole list
	for t := range b.Every() {
		t.listers = nil
		t.audience.Unsaid = !b.Roster.On && t.Remote() // until the terminal is announced again
		if m := t.Mirror(); m != nil {
			t.audience.Unsaid = b.mirrorUnsaid(m)
		}
		t.publish()
	}
	for use := range b.holds {
		use.Lister.book.moved.Raise()
		use.Lister = b.lister(use.Viewer)
	}
	for _, s := range b.Root.Subscriptions() {
		l := s.Of.(Subscriber).Link().Hold.Lister
		l.subs = append(l.subs, s)
	}
	for _, cl := range b.Clients {
		cl.Anew = true
	}
	b.opts.Renewed()
}

// OwnedAnew is called when a client connects as p, which may have another owner than
// before.
func (b *Book) OwnedAnew(cl *Client, p rights.Principal) {
	if cl.Who.Owner == p.Owner {
		cl.Who = p
		return
	}
	cl.Who, cl.Anew = p, true
	b.Sight++
	for t := range b.Every() {
		if t.Creator == cl {
			t.audience.Grants = nil // its new owner sets its audience
			b.reindex(t)
			b.recheck(t)
		}
	}
}
