package host

import (
	"strings"
	"time"

	"tether/ahp"
)

// People knows the people at the host. It is safe for concurrent use.
type People interface {
	// Look returns the people as they are now, the same Roster while nothing has changed. It may look at a file.
	Look() *Roster
	// Agent returns to whom an agent belongs, by the id of the person; ok is false if there is no agent of that name. It may look at a file.
	Agent(name string) (owner string, ok bool)
}

// Roster is who is known at one time. It is never changed.
type Roster struct {
	// On says that audiences are in force: who sees which terminals. Otherwise everybody sees all.
	On bool
	// People are the names of those who have not ended, by their ids.
	People map[string]string
	// Groups are the ids of the members of each group, by its name.
	Groups map[string][]string
	// Grants are those that administrators made for all terminals of a machine whose owner lets them.
	Grants []MachineGrant
}

// MachineGrant lets somebody watch a machine's terminals.
type MachineGrant struct {
	Machine string // name of its token
	Owner   string // id of whose it was when that was granted: with another owner the grant is over
	To      Grantee
}

// Grantee is to whom something is granted: the zero value is nobody.
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

// Resolve returns whom a name in a grant means, as in ahp.Grant. ok is false for every name that means nobody now, whatever the reason.
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

// ID returns what a name in a grant means beside its kind and its own name, to be kept with it: names of agents can be used again.
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

// lookAtPeople is how often the host looks whether people have changed: the longest that somebody sees what is not for them any more.
const lookAtPeople = time.Second
