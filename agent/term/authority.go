package term

import (
	"fmt"
	"strings"
)

// Role is the kind of principal behind a request.
type Role uint8

// The roles, each with rows of its own in rights.
const (
	RoleUser  Role = iota + 1 // the person at this machine
	RoleAgent                 // an agent, told apart by its principal; see AgentAt for those of a host
	RoleHost                  // a paired agent host and everyone who observes there
)

// Actor is who comes through a door.
type Actor struct {
	Role Role
	// Name tells principals of one role apart: the agent's principal or the
	// host's name. It is empty for the local user.
	Name string
}

// User is the local user.
var User = Actor{Role: RoleUser}

// Host is the actor for everything that comes from the host called name.
func Host(name string) Actor { return Actor{Role: RoleHost, Name: name} }

// Agent is the actor for the local agent authenticated as principal.
func Agent(principal string) Actor { return Actor{Role: RoleAgent, Name: principal} }

// AgentAt is the actor for an agent that works in a session of the host called
// host and calls this machine's tools. What is not lent to that host does not
// exist for it, not even what it has started itself. The slash in its name
// keeps it apart from all local agents.
func AgentAt(host, session string) Actor { return Agent(host + "/" + session) }

// At is the host where an agent works, "" for all that are here.
func (a Actor) At() string {
	host, _, ok := strings.Cut(a.Name, "/")
	if a.Role != RoleAgent || !ok {
		return ""
	}
	return host
}

// away is the host through which the actor sees what it sees, "" if it is here.
func (a Actor) away() string {
	if a.Role == RoleHost {
		return a.Name
	}
	return a.At()
}

func (a Actor) String() string {
	switch a.Role {
	case RoleUser:
		return "user"
	case RoleAgent:
		return "agent " + a.Name
	case RoleHost:
		return "host " + a.Name
	}
	return "nobody"
}

// Op is something an actor may want to do with a terminal.
type Op uint8

// The operations that the table knows.
const (
	OpSee     Op = iota + 1 // know that it exists: id, title, size, state
	OpRead                  // its output
	OpType                  // input
	OpResize                // change its size
	OpPromote               // make an agent's terminal the person's
	OpKill                  // end it, or signal what runs in it
	OpLend                  // announce it at a host, or withdraw it
	OpDispose               // AHP disposal by a host: ends the lending, and what else Pool.Dispose says
)

var opNames = [...]string{OpSee: "see", OpRead: "read", OpType: "type into", OpResize: "resize",
	OpPromote: "promote", OpKill: "kill", OpLend: "lend", OpDispose: "dispose of"}

func (o Op) String() string { return opNames[o] }

// relation is what an actor is to a terminal; each has one row in the table.
type relation uint8

const (
	stranger       relation = iota // sees nothing: another agent's, a private or unlent one
	localUser                      // the person, whosever the terminal is
	ownBackground                  // an agent and its own terminal, not promoted
	personsForeign                 // an agent and a terminal of the person's
	ownAway                        // an agent at a host and its own terminal, lent there
	lentHost                       // a host and a terminal lent to it
)

// rights is the one table of who may do what. It has no row for a stranger.
var rights = map[relation][]Op{
	localUser:      {OpSee, OpRead, OpType, OpResize, OpPromote, OpKill, OpLend},
	ownBackground:  {OpSee, OpRead, OpType, OpPromote, OpKill},
	personsForeign: {OpSee, OpRead},
	ownAway:        {OpSee, OpRead, OpKill},
	lentHost:       {OpSee, OpRead, OpDispose},
}

func relate(a Actor, t Info) relation {
	switch {
	case a.Role == RoleUser:
		return localUser
	case t.Private, a.At() != "" && !t.LentToHost(a.At()):
		return stranger
	case a.Role == RoleHost && t.LentToHost(a.Name):
		return lentHost
	case a.Role == RoleAgent && t.Owner == a && a.At() != "":
		return ownAway
	case a.Role == RoleAgent && t.Owner == a:
		return ownBackground
	case a.Role == RoleAgent && t.Owner == User:
		return personsForeign
	}
	return stranger
}

// A DeniedError says that the actor sees the terminal but may not do what it
// asked. What an actor may not even see is answered with ErrNotFound.
type DeniedError struct {
	Actor Actor
	Op    Op
	ID    ID
}

func (e *DeniedError) Error() string {
	return fmt.Sprintf("%s may not %s terminal %s", e.Actor, e.Op, e.ID)
}

// Allow decides whether a may do op with the terminal described by t: nil,
// ErrNotFound or a *DeniedError.
func Allow(a Actor, op Op, t Info) error {
	allowed := rights[relate(a, t)]
	sees := false
	for _, o := range allowed {
		if o == op {
			return nil
		}
		sees = sees || o == OpSee
	}
	if !sees {
		return ErrNotFound
	}
	return &DeniedError{Actor: a, Op: op, ID: t.ID}
}
