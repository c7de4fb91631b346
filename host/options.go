package host

import (
	"cmp"
	"time"

	"github.com/rs/zerolog"

	"tether/ahp"
	"tether/host/agents"
	"tether/host/page"
	"tether/host/preview"
	"tether/host/rights"
	"tether/host/share"
	"tether/host/shells"
)

// Options configure a Host. The zero value is a host that requires no token, with the
// defaults named below.
type Options struct {
	// Token is the token of clients of RoleAdmin. Empty without Access means that
	// everyone who reaches the listener may connect; then the caller must ensure that
	// only this machine can.
	Token string
	// Access knows further tokens; nil means that there are none.
	Access rights.Authenticator
	// Named returns the principal of a name and role, as admitted by any valid token of
	// Access: what belongs to the name lasts as long as there is one. nil means that only
	// tokens that were used at this host count.
	Named func(name string, role rights.Role) (p rights.Principal, ok bool)
	// People knows the people; nil means that there are none, and that everybody sees all
	// lent terminals.
	People rights.People
	// Owners stores the owners of clientIds, for principals of Access; nil means that a
	// restarted host knows none.
	Owners rights.Owners
	// Logins stores which browsers are logged in; nil means that they have to log in
	// again after a restart of the host.
	Logins rights.Logins
	// Register has the entries, besides terminals, that people and administrators see and
	// end at the page; nil means only browsers' logins.
	Register rights.Register
	// Shares stores links by which guests watch one terminal; nil means that they end
	// with the host. NoShares refuses links. ShareURL is the beginning of the links,
	// before the share's id, such as https://host.example/s/#; if empty, machines use the
	// URL by which they have paired.
	Shares   share.Store
	NoShares bool
	ShareURL string
	// Previews shows lent ports in browsers, at names below its Domain. Without a Domain
	// there are none, and NoPreviews says why. Find and Note are the Host's own.
	Previews   preview.Options
	NoPreviews string
	// Provider is where people can log in without a token; nil means nowhere. The Host
	// does not serve its path.
	Provider *page.LoginProvider
	// Secure says that browsers reach the host by https although it receives http,
	// because it is behind a proxy.
	Secure bool
	// Webhooks delivers events to URLs that agents with a token name; nil means that the
	// host opens no connections by itself.
	Webhooks agents.Webhooks
	// Pushes notifies browsers; nil means that none are.
	Pushes page.Pushes
	// Audit receives principals' actions, from several goroutines; it may take as long as
	// a write to a disk. nil drops them.
	Audit func(rights.AuditEvent)
	// Origins are the hosts (with port, if it is not the scheme's own) of web pages that
	// may connect besides pages served by this host itself. A request without an Origin
	// header does not come from a page and is not affected.
	Origins []string
	// Info is the serverInfo that clients are shown.
	Info ahp.Implementation

	// Grace is how long the terminals of a client that negotiated resume outlive its
	// connection; 0 means 30 s.
	Grace time.Duration
	// Park bounds how long the host keeps a terminal for its own doors when the
	// terminal's machine is away for longer than Grace and allows it. It counts from when
	// the machine went away; 0 means not at all.
	Park time.Duration
	// StallTime is how long the other side of a connection may read nothing of what it is
	// sent before the connection is closed; 0 means 15 s.
	StallTime time.Duration
	// HoldTime is how long, in total, an observer that reads less than 128 KiB/s may hold
	// a terminal whose child can wait, before it has to catch up; 0 means 1 s.
	HoldTime time.Duration
	// SilenceTime is how long a connection may be silent before it is pinged. If it is
	// silent for the same time after the ping, or longer if much data is in transit to
	// it, it is closed. 0 means 30 s.
	SilenceTime time.Duration
	// HandshakeTime is how long a new connection may take to initialize or reconnect; 0
	// means 30 s.
	HandshakeTime time.Duration
	// ArrivalTime is how long a message of more than 16 KiB may take to arrive; the part
	// beyond 128 KiB may take the same time again. 0 means 30 s.
	ArrivalTime time.Duration

	// Scrollback is the recorded text kept per terminal, in bytes; 0 means 1 MiB.
	Scrollback int
	// MaxMemory bounds the recorded text and the envelopes kept of all terminals
	// together, in bytes; beyond it, the largest terminals keep less. 0 means 1 GiB. Each
	// terminal keeps some KiB in any case.
	MaxMemory int64
	// LogBytes bounds the encoded envelopes kept per terminal for subscribers that lag
	// and for reconnect; 0 means 512 KiB. Up to four times as much is kept while a
	// subscriber for which the child waits needs it.
	LogBytes int
	// LogCount bounds the number of these envelopes; 0 means 4096.
	LogCount int

	// MaxFrame is the longest message accepted from a client, in bytes; 0 means 1 MiB.
	MaxFrame int64
	// MaxConnections, MaxSubscriptions (per connection) and MaxTerminals (per client, and
	// per name of RoleMachine) bound what clients can make the host hold; 0 means 4096,
	// 1024 and 256. One name has at most a fourth of the connections.
	MaxConnections, MaxSubscriptions, MaxTerminals int

	// Sessions lets clients make sessions, machines publish tools in them, and agents of
	// RoleOperator call those. MaxSessions bounds the number of sessions; 0 means 256.
	Sessions    bool
	MaxSessions int

	// AgentShells lets agents of RoleOperator run commands in shells of this host,
	// through the MCP door, with all rights of the host's user. It has an effect only
	// with Sessions and a Runner.
	AgentShells bool

	// Runner runs server-executed terminals; nil means that this host has none and
	// refuses to create them.
	Runner shells.Runner
	// ShellGrace is how long a server-executed terminal without a client runs before it
	// is ended. Time counts only while nothing but the shell is in its foreground. 0
	// means that it is never ended.
	ShellGrace time.Duration
	// Nodes are the other nodes of the cluster that this host is one of; nil means that
	// it is alone.
	Nodes Nodes
	// Logger receives events, never terminal content and never a token; nil means
	// silence.
	Logger *zerolog.Logger
}

// withDefaults returns o with each zero replaced by the default that its comment names.
func (o Options) withDefaults() Options {
	setDefault(&o.Grace, 30*time.Second)
	setDefault(&o.StallTime, 15*time.Second)
	setDefault(&o.HoldTime, time.Second)
	setDefault(&o.SilenceTime, 30*time.Second)
	setDefault(&o.HandshakeTime, 30*time.Second)
	setDefault(&o.ArrivalTime, 30*time.Second)
	setDefault(&o.Scrollback, 1<<20)
	setDefault(&o.MaxMemory, 1<<30)
	setDefault(&o.LogBytes, 512<<10)
	setDefault(&o.LogCount, 4096)
	setDefault(&o.MaxFrame, 1<<20)
	setDefault(&o.MaxConnections, 4096)
	setDefault(&o.MaxSubscriptions, 1024)
	setDefault(&o.MaxTerminals, 256)
	setDefault(&o.MaxSessions, 256)
	o.Info.Name = cmp.Or(o.Info.Name, "tether-host")
	if o.Logger == nil {
		o.Logger = new(zerolog.Nop())
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
