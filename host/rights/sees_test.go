package rights_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"tether/ahp"
	"tether/host/rights"
)

const lent = "ahp-terminal:/lent"

var (
	ann    = rights.Grantee{Kind: rights.ToPerson, ID: "p-ann"}
	bob    = rights.Grantee{Kind: rights.ToPerson, ID: "p-bob"}
	web    = rights.Grantee{Kind: rights.ToGroup, Name: "web"}
	ci     = rights.Grantee{Kind: rights.ToAgent, Name: "ci", ID: "p-bob"}
	every  = rights.Grantee{Kind: rights.ToEveryone}
	laptop = rights.Principal{Role: rights.RoleMachine, Name: "laptop", Owner: "p-ann"}
	shared = rights.Principal{Role: rights.RoleMachine, Name: "shared"} // belongs to the administrators
)

// company is Ann and Bob, who is in the group web.
func company(on bool) *rights.Roster {
	return &rights.Roster{On: on, People: map[string]string{"p-ann": "ann", "p-bob": "bob"}, Groups: map[string][]string{"web": {"p-bob"}}}
}

func TestWhoSeesWhat(t *testing.T) {
	observer := rights.Principal{Role: rights.RoleObserver, Name: "bobs", Owner: "p-bob"}
	agent := rights.Principal{Role: rights.RoleAgent, Name: "ci", Owner: "p-bob"}
	own := rights.Principal{Role: rights.RoleAgent, Name: "anns", Owner: "p-ann"}
	person := rights.Principal{Role: rights.RoleObserver, Name: "ann", Owner: "p-ann"}
	guest := rights.Principal{Role: rights.RoleObserver, Guest: lent}
	grant := func(to rights.Grantee, pos int64) rights.Audience {
		return rights.Audience{Grants: []rights.Grant{{To: to, Pos: pos}}}
	}
	deny := func(names ...string) (a rights.Audience) {
		a.Said.Denied, a.Grants = names, []rights.Grant{{To: every}}
		return a
	}
	fromHost := rights.Audience{Said: ahp.Audience{HostGrants: true}}
	for _, c := range []struct {
		name  string
		off   bool // audiences are not in force
		owner rights.Principal
		who   rights.Principal
		a     rights.Audience
		over  []rights.Grantee // withdrawn
		host  []rights.Grantee // granted for the whole machine
		from  int64
		sees  bool
	}{
		{name: "nobody is named", who: observer},
		{name: "nobody is named, audiences off", off: true, who: observer, sees: true},
		{name: "its machine", who: laptop, sees: true},
		{name: "another machine", who: rights.Principal{Role: rights.RoleMachine, Name: "desk", Owner: "p-ann"}},
		{name: "another owner's machine of the same name", who: rights.Principal{Role: rights.RoleMachine, Name: "laptop", Owner: "p-bob"}},
		{name: "another machine, audiences off", off: true, who: rights.Principal{Role: rights.RoleMachine, Name: "desk"}},
		{name: "its person", who: person, sees: true},
		{name: "its person's agent", who: own, sees: true},
		{name: "an administrator, of a person's", who: rights.Principal{}},
		{name: "an administrator, of nobody's", owner: shared, who: rights.Principal{}, sees: true},
		{name: "an administrator's browser, of nobody's", owner: shared, who: rights.Principal{Role: rights.RoleObserver, Steward: true}, sees: true},
		{name: "a person, of nobody's", owner: shared, who: observer},
		{name: "a guest of its link", who: guest, sees: true},
		{name: "a guest of its port", who: rights.Principal{Role: rights.RoleObserver, Guest: lent, GuestPort: 3000}},
		{name: "a guest of another link", who: rights.Principal{Role: rights.RoleObserver, Guest: lent + "2"}},
		{name: "a guest, though everyone is named", who: rights.Principal{Role: rights.RoleObserver, Guest: lent + "2"}, a: grant(every, 0)},
		{name: "guests alone: its person", who: person, a: rights.Audience{Said: ahp.Audience{GuestsOnly: true}}},
		{name: "guests alone: a guest", who: guest, a: rights.Audience{Said: ahp.Audience{GuestsOnly: true}}, sees: true},
		{name: "guests alone: its machine", who: laptop, a: rights.Audience{Said: ahp.Audience{GuestsOnly: true}}, sees: true},
		{name: "the machine has not answered", off: true, who: observer, a: rights.Audience{Unsaid: true}},
		{name: "a named person", who: observer, a: grant(bob, 7), from: 7, sees: true},
		{name: "another named person", who: observer, a: grant(ann, 7)},
		{name: "a named person's agent", who: agent, a: grant(bob, 7)},
		{name: "a named group", who: observer, a: grant(web, 7), from: 7, sees: true},
		{name: "a named group of an agent's owner", who: agent, a: grant(web, 7)},
		{name: "a named agent", who: agent, a: grant(ci, 7), from: 7, sees: true},
		{name: "a named agent of another owner", who: rights.Principal{Role: rights.RoleAgent, Name: "ci", Owner: "p-ann"}, owner: shared, a: grant(ci, 7)},
		{name: "everyone", who: agent, a: grant(every, 7), from: 7, sees: true},
		{name: "the earliest grant counts", who: observer, a: rights.Audience{Grants: []rights.Grant{{To: bob, Pos: 9}, {To: web, Pos: 5}, {To: bob, Pos: 7}}}, from: 5, sees: true},
		{name: "text has not arrived", who: observer, a: grant(bob, rights.NotYet)},
		{name: "an ended grant", who: observer, a: grant(bob, 7), over: []rights.Grantee{bob}},
		{name: "an ended grant beside another", who: observer, a: rights.Audience{Grants: []rights.Grant{{To: bob, Pos: 5}, {To: every, Pos: 7}}}, over: []rights.Grantee{bob}, from: 7, sees: true},
		{name: "the host's grant", who: observer, a: fromHost, host: []rights.Grantee{web}, sees: true},
		{name: "the host's grant, which the machine does not allow", who: observer, host: []rights.Grantee{web}},
		{name: "the host's grant, ended here", who: observer, a: fromHost, host: []rights.Grantee{web}, over: []rights.Grantee{web}},
		{name: "a denied person", who: observer, a: deny("bob")},
		{name: "a denied person's agent", who: agent, a: deny("bob"), sees: true},
		{name: "a denied agent", who: agent, a: deny("agent:ci")},
		{name: "a person called as a denied agent", who: observer, a: deny("agent:bob"), sees: true},
		{name: "a denied owner", who: person, a: deny("ann"), sees: true},
		{name: "a denied agent of the owner", who: own, a: deny("agent:anns")},
		{name: "a machine is no observer", who: rights.Principal{Role: rights.RoleMachine, Name: "desk", Owner: "p-bob"}, a: grant(every, 0)},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.owner.Name == "" {
				c.owner = laptop
			}
			r := company(!c.off)
			for _, to := range c.host {
				r.Grants = append(r.Grants, rights.MachineGrant{Machine: c.owner.Name, Owner: c.owner.Owner, To: to})
			}
			d := rights.NewDirectory(r)
			v := d.Viewer(c.who)
			from, sees := v.Sees(rights.NewSubject(lent, &c.owner, &c.a, c.over), d)
			if sees != c.sees || sees && from != c.from {
				t.Errorf("sees %v from %d, want %v from %d", sees, from, c.sees, c.from)
			}
		})
	}
}

// names says in words of grants who a principal is: the model of a grantee.
func names(r *rights.Roster, p rights.Principal) []string {
	all := []string{"everyone"}
	if p.Role == rights.RoleAgent || p.Role == rights.RoleOperator {
		return append(all, "agent "+p.Name+" of "+p.Owner)
	}
	if p.Owner != "" {
		all = append(all, "person "+p.Owner)
	}
	for group, members := range r.Groups {
		if slices.Contains(members, p.Owner) {
			all = append(all, "group "+group)
		}
	}
	return all
}

func nameOf(g rights.Grantee) string {
	switch g.Kind {
	case rights.ToPerson:
		return "person " + g.ID
	case rights.ToGroup:
		return "group " + g.Name
	case rights.ToAgent:
		return "agent " + g.Name + " of " + g.ID
	}
	return "everyone"
}

// model decides by going through everything that was said, in the words of the promise:
// a guest sees the terminal of the link; a machine its own; nobody else sees what the
// machine shows to guests alone or has not answered for; with audiences off, whoever may
// see anything sees it; otherwise the owner and the owner's agents do, and who has a
// grant that has not ended, unless they are denied.
func model(r *rights.Roster, p, owner rights.Principal, a rights.Audience, over []rights.Grantee) (from int64, ok bool) {
	agent := p.Role == rights.RoleAgent || p.Role == rights.RoleOperator
	if p.Guest != "" {
		return 0, p.Guest == lent && p.GuestPort == 0
	}
	if p.Name == owner.Name && p.Role == owner.Role && p.Owner == owner.Owner {
		return 0, true
	}
	if a.Said.GuestsOnly || a.Unsaid || p.Role == rights.RoleMachine {
		return 0, false
	}
	if !r.On {
		return 0, true
	}
	owns := p.Owner == owner.Owner && (owner.Owner != "" || p.Administers()) || owner.Owner == "" && p.Administers()
	name := r.People[p.Owner]
	if agent {
		name = "agent:" + p.Name
	}
	denied := name != "" && name != "agent:" && slices.Contains(a.Said.Denied, name)
	if owns && !(denied && agent) {
		return 0, true
	}
	if denied {
		return 0, false
	}
	from = rights.NotYet
	look := func(g rights.Grantee, pos int64) {
		if slices.Contains(names(r, p), nameOf(g)) && !slices.Contains(over, g) {
			from = min(from, pos)
		}
	}
	for _, g := range a.Grants {
		look(g.To, g.Pos)
	}
	for _, g := range r.Grants {
		if a.Said.HostGrants && g.Machine == owner.Name && g.Owner == owner.Owner {
			look(g.To, 0)
		}
	}
	return from, from < rights.NotYet
}

// The decision is that of the model, whatever people, terminals and principals there are,
// and it changes nothing.
func FuzzSees(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		owners := []string{"", "p-ann", "p-bob", "p-gone"}
		called := []string{"", "ann", "bob", "ci", "laptop"}
		all := []rights.Grantee{ann, bob, web, ci, every, {Kind: rights.ToGroup, Name: "gone"}, {Kind: rights.ToAgent, Name: "ci", ID: "p-ann"}}
		some := func(most int) (list []rights.Grantee) {
			for range rnd.IntN(most + 1) {
				list = append(list, all[rnd.IntN(len(all))])
			}
			return list
		}
		pick := func(from []string) string { return from[rnd.IntN(len(from))] }
		for range 50 {
			r := company(rnd.IntN(4) > 0)
			owner := rights.Principal{Role: rights.RoleMachine, Name: pick(called), Owner: pick(owners)}
			for _, g := range some(3) {
				r.Grants = append(r.Grants, rights.MachineGrant{Machine: owner.Name, Owner: pick(owners), To: g})
			}
			a := rights.Audience{Unsaid: rnd.IntN(9) == 0}
			a.Said.GuestsOnly, a.Said.HostGrants = rnd.IntN(9) == 0, rnd.IntN(2) == 0
			for _, g := range some(4) {
				a.Grants = append(a.Grants, rights.Grant{To: g, Pos: []int64{0, 5, 9, rights.NotYet}[rnd.IntN(4)]})
			}
			for range rnd.IntN(3) {
				a.Said.Denied = append(a.Said.Denied, []string{"ann", "bob", "agent:ci", "agent:", "ci"}[rnd.IntN(5)])
			}
			over := some(2)
			p := rights.Principal{Role: append(rights.Roles(), "")[rnd.IntN(6)], Name: pick(called), Owner: pick(owners), Steward: rnd.IntN(5) == 0}
			if rnd.IntN(6) == 0 {
				p.Guest, p.GuestPort = pick([]string{lent, lent + "2"}), rnd.IntN(2)*3000
			}
			d := rights.NewDirectory(r)
			v, s := d.Viewer(p), rights.NewSubject(lent, &owner, &a, over)
			for range 2 {
				from, sees := v.Sees(s, d)
				want, ok := model(r, p, owner, a, over)
				if sees != ok || sees && from != want {
					t.Fatalf("%+v of %+v, audience %+v, ended %v: sees %v from %d, want %v from %d", p, owner, a, over, sees, from, ok, want)
				}
			}
		}
	})
}

// Names of a viewer's grantees resolve to them: whoever is granted by name sees.
func TestGranteesResolve(t *testing.T) {
	r := company(true)
	d := rights.NewDirectory(r)
	for _, c := range []struct {
		p    rights.Principal
		want string
	}{
		{rights.Principal{Role: rights.RoleObserver, Owner: "p-bob"}, "[bob group:web everyone]"},
		{rights.Principal{Role: rights.RoleAgent, Name: "ci", Owner: "p-bob"}, "[agent:ci everyone]"},
		{rights.Principal{}, "[everyone]"},
	} {
		var got []string
		v := d.Viewer(c.p)
		for g := range v.Grantees() {
			got = append(got, r.NameOf(g))
		}
		if fmt.Sprint(got) != c.want {
			t.Errorf("%+v: %v, want %s", c.p, got, c.want)
		}
	}
}

// Doors ask for each terminal of a list: the decision allocates nothing.
func TestSeesAllocatesNothing(t *testing.T) {
	r := company(true)
	r.Grants = []rights.MachineGrant{{Machine: "laptop", Owner: "p-ann", To: web}}
	d := rights.NewDirectory(r)
	v := d.Viewer(rights.Principal{Role: rights.RoleObserver, Name: "bobs", Owner: "p-bob"})
	s := rights.NewSubject(lent, &laptop, &rights.Audience{Said: ahp.Audience{HostGrants: true}, Grants: []rights.Grant{{To: bob, Pos: 3}}}, []rights.Grantee{web})
	if n := testing.AllocsPerRun(100, func() { _, _ = v.Sees(s, d) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if from, ok := v.Sees(s, d); !ok || from != 3 {
		t.Error(from, ok)
	}
}
