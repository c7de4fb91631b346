package host

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"
)

// Role is what a principal may do at the host. The zero Role is RoleAdmin: it is that of who holds the host's own token, or
// came without one where none is asked for.
type Role string

// The roles, from the least to the most.
const (
	RoleMachine  Role = "machine"  // lends terminals, and sees no others than its own
	RoleObserver Role = "observer" // sees all terminals
	RoleAgent    Role = "agent"    // sees all terminals
	RoleOperator Role = "operator" // an agent that may also call the tools of sessions: machines', and the host's own if there are any
	RoleAdmin    Role = "admin"    // everything, also shells of the host's own
)

// Roles are all roles, in the order of their declaration.
func Roles() []Role { return []Role{RoleMachine, RoleObserver, RoleAgent, RoleOperator, RoleAdmin} }

// right is something that a role may do. Who may do what is decided by grants and nowhere else.
type right int

const (
	rightLend     right = iota // announce client-executed terminals
	rightSee                   // other clients' terminals
	rightMCP                   // the door for agents
	rightPage                  // the page for people
	rightShells                // server-executed terminals: make them and do with them what AHP allows
	rightDispose               // of other clients' terminals and sessions
	rightTools                 // publish tools in sessions
	rightSessions              // make sessions, see what is done in all of them, and call the tools there
	rightCommands              // run commands in shells of the host's that a session holds, where the host is started so
)

// grants is never changed. An observer and an agent differ in name alone, so that the log tells people from programs.
var grants = map[Role][]right{
	RoleMachine:  {rightLend, rightTools},
	RoleObserver: {rightSee, rightMCP, rightPage},
	RoleAgent:    {rightSee, rightMCP},
	RoleOperator: {rightSee, rightMCP, rightSessions, rightCommands},
	RoleAdmin:    {rightLend, rightSee, rightMCP, rightPage, rightShells, rightDispose, rightTools, rightSessions, rightCommands},
}

// Principal is who has been let in.
type Principal struct {
	// Name is what its token was made for, such as the name of a machine. It is empty for who holds the host's own token.
	Name string
	Role Role
	// Live ends when the token is revoked or expires, with the reason as its cause; nil means never. What the principal has
	// opened ends with it.
	Live context.Context
	// Owner is the id of the person to whom it belongs: the person's own for who is one. Empty is the host's administrator.
	Owner string
	// Guest is the URI of the one terminal that a guest may see, by a link; empty for all others.
	Guest string

	steward bool              // an administrator whom a browser let in with less: what has no owner is theirs
	token   [sha256.Size]byte // hash of the token by which it was let in; zero if that is not known
}

// may reports whether the principal has a right.
func (p Principal) may(r right) bool {
	if p.Guest != "" {
		return r == rightSee || r == rightPage
	}
	role := p.Role
	if role == "" {
		role = RoleAdmin
	}
	return slices.Contains(grants[role], r)
}

// live is the context that ends when the principal may do nothing any more.
func (p Principal) live() context.Context {
	if p.Live == nil {
		return context.Background()
	}
	return p.Live
}

// same reports whether two are the same principal.
func (p Principal) same(q Principal) bool {
	return p.Name == q.Name && p.Role == q.Role && p.Guest == q.Guest
}

// Authenticator knows tokens. It is safe for concurrent use.
type Authenticator interface {
	// Authenticate returns whose the token is; ok is false if it is nobody's, has expired or was revoked. How long it takes does not
	// depend on how much of a token is right. It may read a file.
	Authenticate(token string) (p Principal, ok bool)
	// Known is Authenticate for tokens that are known already: it reads nothing, and misses a token made in the last second.
	Known(token string) (p Principal, ok bool)
}

// Owners remembers beyond the host's life which clientId belongs to whom among those that lend. It is safe for concurrent use.
type Owners interface {
	// Owner returns the name of the principal that a clientId belongs to; ok is false if it is nobody's.
	Owner(clientID string) (principal string, ok bool)
	// Own gives a clientId that is nobody's to a principal and returns when that is kept. ours is false if it is another's. If it
	// cannot be kept, it is the principal's all the same until the host ends.
	Own(clientID, principal string) (ours bool, err error)
}

// Login is a browser that is logged in, as it is kept beyond the host's life.
type Login struct {
	Cookie    [sha256.Size]byte // hash of its cookie
	Token     [sha256.Size]byte // hash of the token by which it was logged in
	Principal Principal         // whose that token is
	Until     time.Time
}

// Logins keeps browsers' logins beyond the host's life. It is safe for concurrent use.
type Logins interface {
	// Kept returns those whose token is still good.
	Kept() []Login
	// Keep adds one, unless its token is not good any more or ends with the host, and returns when it is kept.
	Keep(Login) error
	// Drop removes the one with that cookie, if it is there, and those whose token is not good any more.
	Drop(cookie [sha256.Size]byte) error
}

// AuditEvent is something that a principal did, for the record. It holds no token and nothing that a terminal printed.
type AuditEvent struct {
	At       time.Time `json:"at"`
	Type     string    `json:"type"` // one of the Audit constants
	Remote   string    `json:"remote,omitempty"`
	Name     string    `json:"principal,omitempty"`
	Role     Role      `json:"role,omitempty"`
	Client   string    `json:"client,omitempty"`   // clientId
	Terminal string    `json:"terminal,omitempty"` // URI
	Detail   string    `json:"detail,omitempty"`   // more, in words
}

// Types of AuditEvents.
const (
	AuditConnected  = "connected"  // somebody was let in
	AuditRefused    = "refused"    // somebody was not
	AuditClient     = "client"     // a connection has become that of a client
	AuditEnded      = "ended"      // a connection has ended
	AuditCreated    = "created"    // a terminal was announced or started
	AuditDisposed   = "disposed"   // a terminal was disposed of
	AuditSubscribed = "subscribed" // somebody watches a terminal
	AuditSession    = "session"    // a session was created or disposed of
	AuditCalled     = "called"     // an agent has called a machine's tool
	AuditWithdrawn  = "withdrawn"  // an administrator has ended a grant
	AuditShared     = "shared"     // a machine has shared a terminal by a link
	AuditRevoked    = "revoked"    // somebody has ended something at the page
	AuditDenied     = "denied"     // somebody tried what the role does not allow
)

// audit keeps a record. It must not be called with the host's mutex.
func (h *Host) audit(kind string, r remote, ev AuditEvent) {
	if h.opts.Audit == nil {
		return
	}
	ev.At, ev.Type, ev.Remote = time.Now().UTC(), kind, r.name
	ev.Name, ev.Role = r.principal.Name, r.principal.Role
	if ev.Role == "" && kind != AuditRefused {
		ev.Role = RoleAdmin
	}
	h.opts.Audit(ev)
}

// Identity is a person as an identity provider knows them.
type Identity struct {
	Issuer, Subject string   // together they are the person; neither a name nor an address is
	Wanted          string   // the name that the person has there, for the one at this host
	Groups          []string // as grants can name them
}
