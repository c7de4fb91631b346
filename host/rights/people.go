package rights

import (
	"strings"

	"tether/ahp"
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
	Kind rune   // of the constants
	Name string // of a group or an agent
	// ID is that of a person, or of an agent's owner. It is stored with the name of a
	// grantee to identify it, because names of agents can be used again.
	ID string
}

// Kinds of Grantees, as nodes send them to each other.
const (
	ToPerson   = 'p'
	ToGroup    = 'g'
	ToAgent    = 'a'
	ToEveryone = 'e'
)

// Resolve returns the grantee of a name in a grant, as in ahp.Grant. ok is false for
// every name that means nobody now, for any reason.
func Resolve(p People, r *Roster, to string) (g Grantee, ok bool) {
	if name, is := strings.CutPrefix(to, ahp.GroupPrefix); is {
		_, ok = r.Groups[name]
		return Grantee{Kind: ToGroup, Name: name}, ok
	}
	if name, is := strings.CutPrefix(to, ahp.AgentPrefix); is {
		owner, ok := p.Agent(name)
		return Grantee{Kind: ToAgent, Name: name, ID: owner}, ok
	}
	if to == ahp.ToEveryone {
		return Grantee{Kind: ToEveryone}, true
	}
	for id, name := range r.People {
		if name == to {
			return Grantee{Kind: ToPerson, ID: id}, true
		}
	}
	return Grantee{}, false
}

// KeptGrantee returns the Grantee for a stored name and ID.
func KeptGrantee(to, id string) Grantee {
	if name, is := strings.CutPrefix(to, ahp.GroupPrefix); is {
		return Grantee{Kind: ToGroup, Name: name}
	}
	if name, is := strings.CutPrefix(to, ahp.AgentPrefix); is {
		return Grantee{Kind: ToAgent, Name: name, ID: id}
	}
	if to == ahp.ToEveryone {
		return Grantee{Kind: ToEveryone}
	}
	return Grantee{Kind: ToPerson, ID: id}
}

// Ended reports whether grants to g have ended, because the person has ended or the group
// is gone.
func (r *Roster) Ended(g Grantee) bool {
	switch g.Kind {
	case ToPerson:
		return r.People[g.ID] == ""
	case ToGroup:
		_, ok := r.Groups[g.Name]
		return !ok
	}
	return false
}

// NameOf returns a grantee as in ahp.Grant; "" if it does not exist any more.
func (r *Roster) NameOf(g Grantee) string {
	switch g.Kind {
	case ToGroup:
		return ahp.GroupPrefix + g.Name
	case ToAgent:
		return ahp.AgentPrefix + g.Name
	case ToEveryone:
		return ahp.ToEveryone
	}
	return r.People[g.ID]
}
