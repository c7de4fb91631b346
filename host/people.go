package host

import (
	"slices"
	"strings"
	"time"

	"tether/ahp"
)

// People knows the people at the host. It is safe for concurrent use.
type People interface {
	// Look returns the people as they are now, the same Roster while nothing has changed. It may look at a file.
	Look() *Roster
	// Agent returns the owner of an agent, by the id of the person; ok is false if there is no agent of that name. It may read a file.
	Agent(name string) (owner string, ok bool)
	// Withdraw keeps that an administrator has ended what was granted to g, with the name to, of the terminal with that URI. It may write a file.
	Withdraw(terminal, to string, g Grantee) error
}

// Roster is the known people at one time. It is never changed.
type Roster struct {
	// On reports that audiences are in force: they decide who sees which terminals. Otherwise everybody sees all.
	On bool
	// People are the names of those who have not ended, by their ids.
	People map[string]string
	// Groups are the ids of the members of each group, by its name.
	Groups map[string][]string
	// Grants are those that administrators made for all terminals of a machine whose owner lets them.
	Grants []MachineGrant
	// Withdrawn are those to whom a terminal, by its URI, was granted until an administrator ended that.
	Withdrawn map[string][]Grantee
}

// MachineGrant lets somebody watch a machine's terminals.
type MachineGrant struct {
	Machine string // name of its token
	Owner   string // id of whose it was when that was granted: with another owner the grant is over
	To      Grantee
}

// Grantee is the person, group or agent of a grant; the zero value is nobody.
type Grantee struct {
	kind rune   // of the constants
	name string // of a group or an agent
	id   string // of a person, or of whose the agent is
}

const (
	toPerson   = 'p'
	toGroup    = 'g'
	toAgent    = 'a'
	toEveryone = 'e'
)

// Resolve returns the grantee of a name in a grant, as in ahp.Grant. ok is false for every name that means nobody now, for any reason.
func Resolve(p People, r *Roster, to string) (g Grantee, ok bool) {
	if name, is := strings.CutPrefix(to, ahp.GroupPrefix); is {
		_, ok = r.Groups[name]
		return Grantee{kind: toGroup, name: name}, ok
	}
	if name, is := strings.CutPrefix(to, ahp.AgentPrefix); is {
		owner, ok := p.Agent(name)
		return Grantee{kind: toAgent, name: name, id: owner}, ok
	}
	if to == ahp.ToEveryone {
		return Grantee{kind: toEveryone}, true
	}
	for id, name := range r.People {
		if name == to {
			return Grantee{kind: toPerson, id: id}, true
		}
	}
	return Grantee{}, false
}

// ID identifies a grantee besides its kind and its own name, to be kept with it: names of agents can be used again.
func (g Grantee) ID() string { return g.id }

// KeptGrantee is the Grantee of a name and an ID that were kept.
func KeptGrantee(to, id string) Grantee {
	if name, is := strings.CutPrefix(to, ahp.GroupPrefix); is {
		return Grantee{kind: toGroup, name: name}
	}
	if name, is := strings.CutPrefix(to, ahp.AgentPrefix); is {
		return Grantee{kind: toAgent, name: name, id: id}
	}
	if to == ahp.ToEveryone {
		return Grantee{kind: toEveryone}
	}
	return Grantee{kind: toPerson, id: id}
}

// memberships are the names of groups by the ids of their members.
func (r *Roster) memberships() map[string][]string {
	of := map[string][]string{}
	for name, members := range r.Groups {
		for _, id := range members {
			of[id] = append(of[id], name)
		}
	}
	return of
}

// lookEvery is how often the host looks for changes of the people: the longest that somebody sees a terminal that is no longer for them.
const lookEvery = time.Second

// every calls do at that interval until the host closes.
func (h *Host) every(interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			do()
		case <-h.ctx.Done():
			return
		}
	}
}

// lookAtPeople reads the people, and returns them.
func (h *Host) lookAtPeople() *Roster {
	if h.opts.People == nil {
		return &Roster{}
	}
	h.looking.Lock() // so that the later of two reads stays
	defer h.looking.Unlock()
	r := h.opts.People.Look()
	h.mu.Lock()
	defer h.mu.Unlock()
	if r != h.roster {
		h.knowLocked(r)
	}
	return r
}

// knowLocked applies another roster, and ends views of those who do not see a terminal any more.
func (h *Host) knowLocked(r *Roster) {
	before := h.roster
	h.roster, h.groupsOf = r, r.memberships()
	h.sight++
	h.machineGrants = map[machineKey]*machineAudience{}
	for _, g := range r.Grants {
		key := machineKey{g.Machine, g.Owner}
		m := h.machineGrants[key]
		if m == nil {
			m = &machineAudience{from: map[Grantee]int64{}}
			h.machineGrants[key] = m
		}
		m.all = append(m.all, g.To)
		m.from[g.To] = 0
	}
	for use := range h.holds {
		use.viewer = h.viewerLocked(use.Principal)
		if !use.l.key.all {
			use.l.viewer = use.viewer
		}
	}
	if before.On != r.On {
		h.regroupLocked()
	}
	for t := range h.everyLocked() {
		t.audience.grants = slices.DeleteFunc(t.audience.grants, func(g grant) bool { return r.ended(g.to) })
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
	more := slices.DeleteFunc(slices.Clone(h.roster.Withdrawn[t.uri]), func(g Grantee) bool { return slices.Contains(t.withdrawn, g) })
	if len(more) > 0 {
		t.withdrawn = append(t.withdrawn, more...)
		h.setAudienceLocked(t, t.audience)
		h.rowChangedLocked(t)
	}
}

// ended reports whether grants to g are over: the person has left, or the group is gone.
func (r *Roster) ended(g Grantee) bool {
	switch g.kind {
	case toPerson:
		return r.People[g.id] == ""
	case toGroup:
		_, ok := r.Groups[g.name]
		return !ok
	}
	return false
}

// regroupLocked gives everybody another lister, and makes all start again: views, and the marker, have changed.
func (h *Host) regroupLocked() {
	h.listers, h.byOwner = map[listerKey]*lister{}, map[string][]*lister{}
	clear(h.listed.stale)
	h.nextRowLocked() // so that pages, which knew another lister, are sent everything
	for t := range h.everyLocked() {
		t.listers = nil
		t.audience.unsaid = !h.roster.On && t.remote() // until it is announced again
		if t.mirror != nil {
			t.audience.unsaid = h.mirrorUnsaidLocked(t)
		}
	}
	for use := range h.holds {
		use.l.book.moved.Raise()
		use.l = h.listerLocked(use.viewer)
	}
	for _, s := range h.root.subs {
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
	h.toolsChangedLocked()
}

// ownedAnewLocked is called when a client comes as p, which may belong to another person than before.
func (h *Host) ownedAnewLocked(cl *client, p Principal) {
	if cl.principal.Owner == p.Owner {
		cl.principal = p
		return
	}
	cl.principal, cl.anew = p, true
	h.sight++
	for t := range h.everyLocked() {
		if t.creator == cl {
			t.audience.grants = nil // its new owner sets its audience
			h.reindexLocked(t)
			h.recheckLocked(t)
		}
	}
}
