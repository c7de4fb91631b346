package rights

import (
	"iter"
	"math"
	"slices"
	"strings"

	"tether/ahp"
)

// NotYet is the position of text that has not arrived. Until it arrives, a grant that
// begins there shows nothing.
const NotYet = math.MaxInt64

// Directory is a Roster, indexed for decisions. It is never changed.
type Directory struct {
	*Roster
	groups   map[string][]string // names of groups, by the ids of their members
	machines map[machine]grantees
}

// machine names a machine in grants of the host.
type machine struct{ name, owner string }

// grantees are those to whom an administrator has granted everything that a machine
// lends.
type grantees struct {
	all  []Grantee
	from map[Grantee]int64 // the same as a map, each from position 0
}

// NewDirectory returns the directory of a roster.
func NewDirectory(r *Roster) *Directory {
	d := &Directory{Roster: r, groups: map[string][]string{}, machines: map[machine]grantees{}}
	for name, members := range r.Groups {
		for _, id := range members {
			d.groups[id] = append(d.groups[id], name)
		}
	}
	for _, g := range r.Grants {
		key := machine{g.Machine, g.Owner}
		m := d.machines[key]
		if m.from == nil {
			m.from = map[Grantee]int64{}
		}
		m.all = append(m.all, g.To)
		m.from[g.To] = 0
		d.machines[key] = m
	}
	return d
}

// MachineGrants returns the grantees to whom an administrator has granted everything that
// a machine lends. The caller must not change them.
func (d *Directory) MachineGrants(p *Principal) []Grantee {
	return d.machines[machine{p.Name, p.Owner}].all
}

// Viewer is a principal who wants to see terminals, with the facts of one Directory that
// decide about it.
type Viewer struct {
	Principal
	person string   // name of the person who owns it
	groups []string // names of the person's groups
}

// Viewer returns the viewer for a principal.
func (d *Directory) Viewer(p Principal) Viewer {
	return Viewer{p, d.People[p.Owner], d.groups[p.Owner]}
}

// isAgent reports whether v is an agent, for which only grants to itself count.
func (v *Viewer) isAgent() bool { return v.Role == RoleAgent || v.Role == RoleOperator }

// Belongs reports whether what the person with that id owns, or nobody if owner is empty,
// belongs to v.
func (v *Viewer) Belongs(owner string) bool {
	return owner == "" && v.Administers() || owner != "" && v.Owner == owner
}

// Grantees returns whom a grant may name so that it counts for v.
func (v *Viewer) Grantees() iter.Seq[Grantee] {
	return func(yield func(Grantee) bool) {
		switch {
		case v.isAgent():
			if !yield(Grantee{Kind: ToAgent, Name: v.Name, ID: v.Owner}) {
				return
			}
		case v.Owner != "" && !yield(Grantee{Kind: ToPerson, ID: v.Owner}):
			return
		default:
			for _, name := range v.groups {
				if !yield(Grantee{Kind: ToGroup, Name: name}) {
					return
				}
			}
		}
		yield(Grantee{Kind: ToEveryone})
	}
}

// first returns the position from which on the grants let v watch, except for ended ones,
// NotYet if none does.
func (v *Viewer) first(to map[Grantee]int64, ended []Grantee) int64 {
	first := int64(NotYet)
	if len(to) == 0 {
		return first
	}
	for g := range v.Grantees() {
		if from, ok := to[g]; ok && !slices.Contains(ended, g) {
			first = min(first, from)
		}
	}
	return first
}

// Audience lists who may watch a terminal besides its machine's owner and that person's
// agents. It is guarded by the lock of the terminal's owner.
type Audience struct {
	Declared bool // the machine has sent an audience, and so wants to know who watches
	Said     ahp.Audience
	Grants   []Grant
	Refused  []string // names in the audience that mean nobody
	Pending  bool     // a grant begins at text that has not arrived yet
	Unsaid   bool     // the machine has not said yet whether it also lends to hosts where everybody sees everything
}

// Grant is a grant for one terminal.
type Grant struct {
	To   Grantee
	Name string // as the owner sent it
	From int64  // position in the owner's text from which on the grant holds; 0: from the beginning
	Pos  int64  // From as a position in the recorded text, or NotYet
}

// Subject is a terminal with all that decides who sees it. It is never changed.
type Subject struct {
	uri                            string
	machine                        machine
	role                           Role // of the machine
	guestsOnly, hostGrants, unsaid bool
	from                           map[Grantee]int64 // the position from which on a grantee sees the text
	denied                         map[denied]struct{}
	withdrawn                      []Grantee
}

// denied identifies the person or agent that a denial means, even if somebody else has
// the name now.
type denied struct {
	agent bool
	name  string
}

// NewSubject returns the terminal with that URI and owner. withdrawn are the grantees
// whose grants an administrator has ended; the caller must not change them any more.
func NewSubject(uri string, owner *Principal, a *Audience, withdrawn []Grantee) *Subject {
	s := &Subject{uri: uri, machine: machine{owner.Name, owner.Owner}, role: owner.Role,
		guestsOnly: a.Said.GuestsOnly, hostGrants: a.Said.HostGrants, unsaid: a.Unsaid, withdrawn: withdrawn}
	if len(a.Grants) > 0 {
		s.from = make(map[Grantee]int64, len(a.Grants))
	}
	for _, g := range a.Grants {
		if before, ok := s.from[g.To]; !ok || g.Pos < before {
			s.from[g.To] = g.Pos
		}
	}
	if len(a.Said.Denied) > 0 {
		s.denied = make(map[denied]struct{}, len(a.Said.Denied))
	}
	for _, name := range a.Said.Denied {
		name, agent := strings.CutPrefix(name, ahp.AgentPrefix)
		s.denied[denied{agent, name}] = struct{}{}
	}
	return s
}

// Sees decides whether v sees s, and from which position of the recorded text on. d is
// the Directory that v is from. All doors of the host ask it; it allocates nothing.
func (v *Viewer) Sees(s *Subject, d *Directory) (from int64, ok bool) {
	switch {
	case v.Guest != "":
		return 0, v.Guest == s.uri && v.GuestPort == 0
	case v.Role == s.role && (machine{v.Name, v.Owner}) == s.machine: // another client of the same machine
		return 0, true
	case s.guestsOnly || s.unsaid || !v.May(See):
		return 0, false
	case !d.On:
		return 0, true
	case v.deniedBy(s):
		return 0, !v.isAgent() && v.Belongs(s.machine.owner) // denials do not apply to one's own terminals
	case v.Belongs(s.machine.owner):
		return 0, true
	case s.hostGrants && v.first(d.machines[s.machine].from, s.withdrawn) == 0:
		return 0, true
	}
	from = v.first(s.from, s.withdrawn)
	return from, from < NotYet
}

// deniedBy reports whether the person or the agent is denied.
func (v *Viewer) deniedBy(s *Subject) bool {
	who := denied{false, v.person}
	if v.isAgent() {
		who = denied{true, v.Name}
	}
	_, is := s.denied[who]
	return is && who.name != ""
}
