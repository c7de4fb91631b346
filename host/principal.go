package host

import (
	"cmp"
	"context"
	"crypto/sha256"
	"slices"
	"time"
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

// right is a right of a role. The only table of rights is grants.
type right int

const (
	rightLend     right = iota // announce client-executed terminals
	rightSee                   // other clients' terminals
	rightMCP                   // the door for agents
	rightPage                  // the page for people
	rightShells                // server-executed terminals: make them and use them as AHP allows
	rightDispose               // dispose of other clients' terminals and sessions
	rightTools                 // publish tools in sessions
	rightSessions              // make sessions, see all of their contents, and call the tools there
	rightCommands              // run commands in shells of the host that a session holds, if Options.AgentShells is set
)

// grants is never changed. Observers and agents see the same terminals; they are separate
// roles so that the log distinguishes people from programs.
var grants = map[Role][]right{
	RoleMachine:  {rightLend, rightTools},
	RoleObserver: {rightSee, rightMCP, rightPage},
	RoleAgent:    {rightSee, rightMCP},
	RoleOperator: {rightSee, rightMCP, rightSessions, rightCommands},
	RoleAdmin:    {rightLend, rightSee, rightMCP, rightPage, rightShells, rightDispose, rightTools, rightSessions, rightCommands},
}

// Principal is an admitted client's identity.
type Principal struct {
	// Name is the name for which its token was made, such as that of a machine. It is
	// empty for the host's own token.
	Name string
	Role Role
	// Live ends when the token is revoked or expires, with the reason as its cause; nil
	// means never. What the token has opened ends with it. What belongs to the name ends
	// with its last token: see Host.Lasting.
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

	steward bool              // an administrator with a browser's lesser rights: owns things without an owner
	token   [sha256.Size]byte // hash of the token by which it was admitted; zero if unknown
}

// may reports whether the principal has a right.
func (p Principal) may(r right) bool {
	if p.Guest != "" {
		return r == rightSee || r == rightPage
	}
	role := cmp.Or(p.Role, RoleAdmin)
	return slices.Contains(grants[role], r)
}

// live returns the context that ends when the principal may not do anything any more.
func (p Principal) live() context.Context {
	if p.Live == nil {
		return context.Background()
	}
	return p.Live
}

// same reports whether p and q are the same principal. A guest stays the same when the
// terminal gets another URI.
func (p Principal) same(q Principal) bool {
	return p.Name == q.Name && p.Role == q.Role && (p.Guest == "") == (q.Guest == "")
}

// Key returns a map key: principals of another name, role or owner have another key. All
// guests share one.
func (p Principal) Key() string { return string(p.Role) + " " + p.Name + " " + p.Owner }

// Authenticator knows tokens. It is safe for concurrent use.
type Authenticator interface {
	// Authenticate returns the principal of a token; ok is false if the token is unknown,
	// has expired or was revoked. The time that it takes does not depend on how much of a
	// token is correct. It may read a file.
	Authenticate(token string) (p Principal, ok bool)
	// Known is Authenticate without reading a file: it may not know a token that was made
	// in the last second.
	Known(token string) (p Principal, ok bool)
}

// Owners stores the owners of clientIds for the next host, for principals that lend. It
// is safe for concurrent use.
type Owners interface {
	// Owner returns the name of the principal to which a clientId belongs; ok is false if
	// it belongs to nobody.
	Owner(clientID string) (principal string, ok bool)
	// Own gives a clientId without an owner to a principal and returns when that is
	// stored. ours is false if the clientId belongs to another principal. If storing
	// fails, it still belongs to the principal until the host ends.
	Own(clientID, principal string) (ours bool, err error)
}

// Login is a logged-in browser, as stored for the next host.
type Login struct {
	Cookie    [sha256.Size]byte // hash of its cookie
	Token     [sha256.Size]byte // hash of the token by which it was logged in
	Principal Principal         // the principal of that token
	Until     time.Time
	Proof     Proof
}

// Proof says whether the person was there when a browser was logged in, and not only
// their cookie at an identity provider.
type Proof string

// The Proofs.
const (
	ProofNone    Proof = ""        // an earlier login at the identity provider may have sufficed
	ProofNow     Proof = "now"     // the person has shown a token or a link, or has logged in at the provider
	ProofMissing Proof = "missing" // the provider was asked for a new login, and does not say that there was one
)

// Logins stores browsers' logins for the next host. It is safe for concurrent use.
type Logins interface {
	// Kept returns the logins whose token is still valid.
	Kept() []Login
	// Keep adds a login, unless its token is not valid any more or ends with the host,
	// and returns when it is stored.
	Keep(Login) error
	// Of returns the principal of the token with that hash; ok is false if it is not
	// valid any more, or belongs to another name.
	Of(token [sha256.Size]byte, name string) (p Principal, ok bool)
	// Drop removes the login with that cookie, if there is one, and those whose token is
	// not valid any more.
	Drop(cookie [sha256.Size]byte) error
}

// SharedLogins are Logins that all nodes of a cluster share. Kept then also returns those
// of other nodes.
type SharedLogins interface {
	Logins
	// Moved reports whether they have changed since Kept was called. It is cheap.
	Moved() bool
	// KeepLink adds a link that logs one browser in, once, at any node; in the Login, the
	// hash of its code is in place of the cookie's. kept is false if the token is valid
	// only at this node.
	KeepLink(Login) (kept bool, err error)
	// UseLink uses up a link; ok is false if there is none, or not any more. It may wait
	// for a link that another node has just made.
	UseLink(code [sha256.Size]byte) (one Login, ok bool, err error)
}

// AuditEvent is something that a principal did, for the record. It contains no token and
// no output of a terminal.
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
	AuditConnected  = "connected"  // a client was admitted
	AuditRefused    = "refused"    // a client was refused
	AuditClient     = "client"     // a connection has identified its client
	AuditEnded      = "ended"      // a connection has ended
	AuditCreated    = "created"    // a terminal was announced or started
	AuditDisposed   = "disposed"   // a terminal was disposed of
	AuditSubscribed = "subscribed" // a principal watches a terminal
	AuditSession    = "session"    // a session was created or disposed of
	AuditCalled     = "called"     // an agent has called a machine's tool
	AuditPort       = "port"       // a machine opens or closes a port, or a principal first asks it
	AuditWithdrawn  = "withdrawn"  // an administrator has ended a grant
	AuditShared     = "shared"     // a machine has shared a terminal by a link
	AuditRevoked    = "revoked"    // an entry was ended at the page
	AuditDenied     = "denied"     // an attempt that the role does not allow
)

// audit writes a record. It must not be called with the host's mutex.
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
	Issuer, Subject string   // together they identify the person; a name or an address does not
	Wanted          string   // the name that the person has there, from which this host makes one
	Groups          []string // as grants can name them
}
