package host

import (
	"slices"
	"strings"
	"time"

	"tether/ahp"
	"tether/internal/retry"
)

// People knows the people at the host. It is safe for concurrent use.
type People interface {
	// Look returns the people as they are now. It returns the same Roster while nothing
	// has changed. It may read a file.
	Look() *Roster
	// Agent returns the owner of an agent, by the id of the person; ok is false if there
	// is no agent of that name. It may read a file.
	Agent(name string) (owner string, ok bool)
	// Withdraw stores that an administrator has ended the grants to g, written as to, for
	// the terminal with that URI. It may write a file.
	Withdraw(terminal, to string, g Grantee) error
}

// Roster is the known people at one time. It is never changed.
type Roster struct {
	// On reports that audiences are in force: they decide who sees which terminals.
	// Otherwise everybody sees all.
	On bool
	// People has the names of the people who have not ended, by their ids.
	People map[string]string
	// Groups has the ids of each group's members, by the group's name.
	Groups map[string][]string
	// Grants has the grants that administrators have made for all terminals of a machine.
	// They have effect only if the machine's owner allows such grants.
	Grants []MachineGrant
	// Withdrawn has, by the URI of a terminal, the grantees whose grants an administrator
	// has ended.
	Withdrawn map[string][]Grantee
}

// MachineGrant lets somebody watch a machine's terminals.
type MachineGrant struct {
	Machine string // name of its token
	Owner   string // id of the machine's owner at the time of the grant: with another owner it has no effect
	To      Grantee
}

// Grantee is the person, group or agent of a grant; the zero value is nobody.
type Grantee struct {
	kind rune   // of the constants
	name string // of a group or an agent
	id   string // of a person, or of an agent's owner
}

const (
	toPerson   = 'p'
	toGroup    = 'g'
	toAgent    = 'a'
	toEveryone = 'e'
)

// Resolve returns the grantee of a name in a grant, as in ahp.Grant. ok is false for
// every name that means nobody now, for any reason.
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

// ID is stored with the name of a grantee to identify it, because names of agents can be
// used again.
func (g Grantee) ID() string { return g.id }

// KeptGrantee returns the Grantee for a stored name and ID.
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

// memberships returns the names of groups by the ids of their members.
func (r *Roster) memberships() map[string][]string {
	of := map[string][]string{}
	for name, members := range r.Groups {
		for _, id := range members {
			of[id] = append(of[id], name)
		}
	}
	return of
}

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
func (h *Host) lookAtPeople() *Roster {
	if h.opts.People == nil {
		return &Roster{}
	}
	h.looking.Lock() // so that the later of two reads is applied last
	defer h.looking.Unlock()
	r := h.opts.People.Look()
	h.mu.Lock()
	defer h.mu.Unlock()
	if r != h.roster {
		h.knowLocked(r)
	}
	return r
}

// knowLocked applies another roster, and ends the views of those who do not see a
// terminal any more.
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

// ended reports whether grants to g have ended, because the person has ended or the group
// is gone.
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

// regroupLocked gives everybody another lister and closes all connections, because views
// and the marker have changed.
func (h *Host) regroupLocked() {
	h.listers, h.byOwner = map[listerKey]*lister{}, map[string][]*lister{}
	clear(h.listed.stale)
	h.nextRowLocked() // so that pages with the former lister get the whole list
	for t := range h.everyLocked() {
		t.listers = nil
		t.audience.unsaid = !h.roster.On && t.remote() // until the terminal is announced again
		if t.mirror != nil {
			t.audience.unsaid = h.mirrorUnsaidLocked(t)
		}
	}
	for use := range h.holds {
		use.l.book.moved.Raise()
		use.l = h.listerLocked(use.viewer)
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
	h.toolsChangedLocked()
}

// ownedAnewLocked is called when a client connects as p, which may have another owner
// than before.
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
