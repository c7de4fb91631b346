// Package sessions has the sessions of a host: AHP's sessions and their chats, as far as
// agents' tool calls need them. Machines publish their tools in sessions, agents call
// them there, and whoever may see a session can follow its calls. A call of the host's
// own may use the host's shells.
//
// A [Book] has all sessions. It has no lock of its own: the lock of its owner, the host,
// guards the book, its sessions, and what the interfaces here give access to. The host's
// connections call [Book], [Session] and [News] with that lock. [Caller], [Call] and
// [Agents] are for agents and for other nodes: they take the lock themselves.
package sessions

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"tether/ahp"
	"tether/host/channel"
	"tether/host/rights"
	"tether/jsonrpc"
)

// Provider is the agent's provider in sessions: agents come through the host's doors.
const Provider = "tether"

const (
	maxClientSessions = 16        // sessions that one client has created
	maxActiveClients  = 64        // clients with tools in one session
	maxCalls          = 16        // tool calls of one session at a time
	maxTurns          = 64        // turns that are kept
	maxTurnBytes      = 1 << 20   // bytes of tool calls: more begin no call in the same turn, and older turns give way
	maxToolResult     = 256 << 10 // bytes of a result
	maxPublished      = 64 << 10  // bytes of a client's publication, or of another dispatch on a session

	// MaxMachine bounds the name of a client's machine, in bytes.
	MaxMachine = 64
	// MaxAgents bounds the agents of a node.
	MaxAgents = 1024
)

var (
	// ErrNoSession is returned for a session that does not exist, or not any more.
	ErrNoSession = errors.New("host: no such session")
	errSessions  = errors.New("host: too many sessions")
	errNotText   = errors.New("not valid UTF-8")
	errClosing   = jsonrpc.Errorf(jsonrpc.CodeInternal, "this connection is being closed")
)

// Client is a client of the host, across its connections.
type Client interface {
	ID() string
	Party() channel.Party
	Principal() *rights.Principal
	// Machine is the name of the client's machine, for people: at most MaxMachine bytes.
	Machine() string
	// Conn is the client's connection, nil while it has none.
	Conn() Conn
}

// Conn is a connection whose client is known.
type Conn interface {
	Client() Client
	// Principal is who is connected.
	Principal() *rights.Principal
	// Closing reports that the connection is being closed: its client changes nothing
	// any more.
	Closing() bool
	// Owns reports whether what belongs to that person belongs to the principal; "" is
	// the administrator.
	Owns(person string) bool
	// Follows reports whether it subscribes to a channel.
	Follows(uri string) bool
	// Echo answers the sender of an action alone, unless there are too many answers.
	Echo(uri string, a ahp.Action, origin *ahp.Origin)
	// Wake makes the connection ask for its next message.
	Wake()
	// Denied records an attempt that the principal's role does not allow, and returns the
	// error for it. It is called without the lock, as Audit is.
	Denied(what string) error
	// Audit records what the client did to a session.
	Audit(what string)
}

// Shells are the terminals of the host.
type Shells interface {
	// Shell returns the shell with that URI, or nil.
	Shell(uri string) Shell
	// Held returns the shells that a session holds.
	Held(session string) []Shell
	// Start starts a shell. When it runs, or cannot be started, it calls started, without
	// the lock. It returns an error if it does not even begin.
	Start(creator Client, p ahp.CreateTerminalParams, started func(Shell, error)) error
	// Creator makes the client that stands for a session as the creator of shells.
	Creator(session string, p rights.Principal) Client
	// Foreign reports whether the URI is that of a terminal of another client than by
	// that a person may see; "" is the administrator.
	Foreign(uri string, by Client, person string) bool
	// Taken reports whether a channel besides those of sessions has that URI.
	Taken(uri string) bool
}

// Shell is a terminal whose process runs at the host.
type Shell interface {
	URI() string
	// Creator is who has it created.
	Creator() Client
	State() *ahp.TerminalState
	// Claim puts a claim in force.
	Claim(ahp.Claim)
	// Tail is the end of the recorded text, about max bytes; cut says that there is more.
	Tail(max int) (text string, cut bool)
	// Next is closed when the state has changed.
	Next() <-chan struct{}
	// Dispose removes the shell from the host. Kill ends its process.
	Dispose()

	// Kill, Input and Reports are called without the lock. Reports says that the shell
	// will report its commands, unless its start-up files prevent that.
	Kill()
	Input(text string) error
	Reports() bool
}

// Options are what a Book needs of its owner.
type Options struct {
	Lock    sync.Locker     // the owner's
	Context context.Context // ends with the owner
	Go      func(func())    // runs a function on a goroutine for which the owner's end waits
	Order   *channel.Order
	Shells  Shells
	Max     int // the greatest number of sessions; 0: none at all
	// Audiences reports whether they are in force; then sessions belong to people.
	Audiences func() bool
	// Audit writes a record. It is called without the lock.
	Audit func(kind string, p rights.Principal, ev rights.AuditEvent)
}

// Book has all sessions of a host.
type Book struct {
	o      Options
	byURI  map[string]*Session // by the URIs of their channels, two for each
	agents *Agents
	news   map[*News]struct{}
	closed bool
}

// New returns a book without sessions, and its agents' side.
func New(o Options, a AgentOptions) (*Book, *Agents) {
	b := &Book{o: o, byURI: map[string]*Session{}, news: map[*News]struct{}{}}
	b.agents = newAgents(b, a)
	return b, b.agents
}

// Close keeps the book as it is: no session and no call is added.
func (b *Book) Close() { b.closed = true }

// Session returns the session to one of whose channels the URI belongs, or nil.
func (b *Book) Session(uri string) *Session { return b.byURI[uri] }

// named returns the session whose own channel has that URI, or nil.
func (b *Book) named(uri string) *Session {
	if s := b.byURI[uri]; s != nil && s.uri == uri {
		return s
	}
	return nil
}

// all returns the sessions, the newest first.
func (b *Book) all() []*Session {
	all := make([]*Session, 0, len(b.byURI)/2)
	for uri, s := range b.byURI {
		if s.uri == uri {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *Session) int {
		return cmp.Or(b.created.Compare(a.created), cmp.Compare(a.uri, b.uri))
	})
	return all
}

// Name returns what people call the session with that URI: its agent, or its title; ok is
// false if there is none.
func (b *Book) Name(uri string) (name string, ok bool) {
	s := b.byURI[uri]
	if s == nil {
		return "", false
	}
	for agent, of := range b.agents.sessions {
		if of == s {
			return agent, true
		}
	}
	return s.state.Title, true
}

// Leave takes a client's tools back from the sessions in which it takes no part any more,
// and ends those that it created, if it is away and nobody else is in them. It returns
// shells to be killed without the lock.
func (b *Book) Leave(cl Client) (killed []Shell) {
	for _, s := range b.all() {
		c := cl.Conn()
		if c != nil && c.Follows(s.uri) {
			continue
		}
		s.leave(cl, nil)
		if s.creator == cl && c == nil && s.idle() {
			killed = append(killed, s.dispose("the session's creator has gone")...)
		}
	}
	return killed
}

// Kill ends the processes of shells that were disposed of. It is called without the lock.
func Kill(all []Shell) {
	for _, t := range all {
		t.Kill()
	}
}

// forget removes a session that has ended.
func (b *Book) forget(s *Session) {
	delete(b.byURI, s.uri)
	delete(b.byURI, s.chat.URI())
	maps.DeleteFunc(b.agents.sessions, func(_ string, of *Session) bool { return of == s })
}
