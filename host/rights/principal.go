// Package rights says who may do what at a host: principals and their roles, people and
// groups, grants, and who sees which terminal. It decides, and knows no connection and no
// terminal; it does no I/O, and has no lock and no clock.
package rights

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
)

// Role is a principal's set of rights at the host. The zero Role is RoleAdmin: it belongs
// to clients with the host's own token, or without one if the host asks for none.
type Role string

// The roles, from the least to the most.
const (
	RoleMachine  Role = "machine"  // lends terminals, and sees no others than its own
	RoleObserver Role = "observer" // sees all terminals
	RoleAgent    Role = "agent"    // sees all terminals
	RoleOperator Role = "operator" // an agent that may also call the tools of sessions: machines', and the host's own if there are any
	RoleAdmin    Role = "admin"    // everything, including shells of the host
)

// Roles are all roles, in the order of their declaration.
func Roles() []Role { return []Role{RoleMachine, RoleObserver, RoleAgent, RoleOperator, RoleAdmin} }

// Right is a right of a role. The only table of rights is grants.
type Right int

// The rights.
const (
	Lend     Right = iota // announce client-executed terminals
	See                   // other clients' terminals
	MCP                   // the door for agents
	Page                  // the page for people
	Shells                // server-executed terminals: make them and use them as AHP allows
	Dispose               // dispose of other clients' terminals and sessions
	Tools                 // publish tools in sessions
	Sessions              // make sessions, see all of their contents, and call the tools there
	Commands              // run commands in shells of the host that a session holds, if the host lends them
)

// grants is never changed. Observers and agents see the same terminals; they are separate
// roles so that the log distinguishes people from programs.
var grants = map[Role][]Right{
	RoleMachine:  {Lend, Tools},
	RoleObserver: {See, MCP, Page},
	RoleAgent:    {See, MCP},
	RoleOperator: {See, MCP, Sessions, Commands},
	RoleAdmin:    {Lend, See, MCP, Page, Shells, Dispose, Tools, Sessions, Commands},
}

// Principal is an admitted client's identity.
type Principal struct {
	// Name is the name for which its token was made, such as that of a machine. It is
	// empty for the host's own token.
	Name string
	Role Role
	// Live ends when the token is revoked or expires, with the reason as its cause; nil
	// means never. What the token has opened ends with it. What belongs to the name ends
	// with its last token: see Names.
	Live context.Context
	// Owner is the id of the person who owns it; for a person, their own id. Empty means
	// the host's administrator.
	Owner string
	// Guest is the URI of the one terminal that a guest may see, by a link; empty for all
	// others.
	Guest string
	// GuestPort is the lent port of that terminal that a guest sees, and nothing else; 0:
	// the guest watches the terminal.
	GuestPort int

	Steward bool              // an administrator with a browser's lesser rights: owns things without an owner
	Token   [sha256.Size]byte // hash of the token by which it was admitted; zero if unknown
}

// Named is a principal as nodes tell it to each other.
type Named struct {
	Name  string `json:"name,omitempty"` // empty: the host's own token
	Role  Role   `json:"role"`
	Owner string `json:"owner,omitempty"`
}

// Named returns what other nodes are told of p.
func (p *Principal) Named() Named { return Named{p.Name, p.Role, p.Owner} }

// Principal returns the principal, without what only its own node knows.
func (n Named) Principal() Principal { return Principal{Name: n.Name, Role: n.Role, Owner: n.Owner} }

// GuestName begins the name of a guest's principal; the id of the share follows.
const GuestName = "guest "

// May reports whether the principal has a right.
func (p Principal) May(r Right) bool {
	if p.Guest != "" {
		return r == See || r == Page
	}
	role := cmp.Or(p.Role, RoleAdmin)
	return slices.Contains(grants[role], r)
}

// Life returns the context that ends when the principal may not do anything any more; it
// is never nil.
func (p Principal) Life() context.Context {
	if p.Live == nil {
		return context.Background()
	}
	return p.Live
}

// Same reports whether p and q are the same principal. A guest stays the same when the
// terminal gets another URI.
func (p Principal) Same(q Principal) bool {
	return p.Name == q.Name && p.Role == q.Role && (p.Guest == "") == (q.Guest == "")
}

// Administers reports whether machines and agents without an owner belong to the
// principal.
func (p *Principal) Administers() bool { return p.Role == RoleAdmin || p.Role == "" || p.Steward }

// Key returns a map key: principals of another name, role or owner have another key. All
// guests share one.
func (p Principal) Key() string { return string(p.Role) + " " + p.Name + " " + p.Owner }
