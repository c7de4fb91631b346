package term

import (
	"fmt"
	"strings"
)

// Role is the kind of a principal.
type Role uint8

// The roles. Each has its own rows in the table rights.
const (
	RoleUser  Role = iota + 1 // the person at this machine
	RoleAgent                 // an agent, known by its name; see AgentAt for agents at a host
	RoleHost                  // a paired host, and everybody who observes there
)

// Actor is the principal of a request, as the door has identified it.
type Actor struct {
	Role Role
	// Name identifies one agent or one host. It is empty for the local user.
	Name string
}

// User is the local user.
var User = Actor{Role: RoleUser}

// Host is the actor of all requests from the host with that name.
func Host(name string) Actor { return Actor{Role: RoleHost, Name: name} }

// Agent is the actor of the local agent with that name.
func Agent(principal string) Actor { return Actor{Role: RoleAgent, Name: principal} }

// AgentAt is the actor of an agent in a session of a host that calls this machine's
// tools. It sees only terminals that are lent to that host, even of those that it has
// started. The slash in its name distinguishes it from all local agents.
func AgentAt(host, session string) Actor { return Agent(host + "/" + session) }

// At returns the host at which the agent works, or "" for actors on this machine.
func (a Actor) At() string {
	host, _, ok := strings.Cut(a.Name, "/")
	if a.Role != RoleAgent || !ok {
		return ""
	}
	return host
}

// away returns the host through which the actor sees terminals, or "" for actors on this
// machine.
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

// Op is an operation on a terminal.
type Op uint8

// The operations that the table knows.
const (
	OpSee     Op = iota + 1 // know that it exists: id, title, size, state
	OpRead                  // its output
	OpType                  // input
	OpResize                // change its size
	OpPromote               // make an agent's terminal the person's
	OpKill                  // end it, or signal the processes in it
	OpLend                  // announce it at a host, or withdraw it
	OpDispose               // AHP disposal by a host: ends the lending, and more as Pool.Dispose documents
)

var opNames = [...]string{OpSee: "see", OpRead: "read", OpType: "type into", OpResize: "resize",
	OpPromote: "promote", OpKill: "kill", OpLend: "lend", OpDispose: "dispose of"}

func (o Op) String() string { return opNames[o] }

// relation says how an actor is related to a terminal. Each has one row in the table
// rights.
type relation uint8

const (
	stranger       relation = iota // sees nothing: the terminal is another agent's, private or not lent
	localUser                      // the person, with any terminal
	ownBackground                  // an agent and its own terminal, not promoted
	personsForeign                 // an agent and a terminal of the person's
	ownAway                        // an agent at a host and its own terminal, lent there
	lentHost                       // a host and a terminal lent to it
)

// rights is the table of rights. It is the only one, and has no row for strangers.
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

// DeniedError says that the actor may see the terminal but not perform the operation. If
// the actor may not see it either, the error is ErrNotFound.
type DeniedError struct {
	Actor Actor
	Op    Op
	ID    ID
}

func (e *DeniedError) Error() string {
	return fmt.Sprintf("%s may not %s terminal %s", e.Actor, e.Op, e.ID)
}

// Allow returns nil if a may perform op on the terminal that t describes, else
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
