package policy

import (
	"time"

	"tether/agent/term"
)

// EventType is the kind of an Event.
type EventType string

// The events. The engine writes decisions, spawns and outcomes of questions; the pool's
// observer writes actions on terminals.
const (
	EventDecision EventType = "decision" // a request was allowed, asked about or denied
	EventAnswer   EventType = "answer"   // the person answered a question, or nobody did
	EventSpawn    EventType = "spawn"    // a terminal was started
	EventFailed   EventType = "failed"   // something allowed went wrong, such as a start
	EventExit     EventType = "exit"     // a terminal's child has ended
	EventKill     EventType = "kill"     // a terminal was ended
	EventRestart  EventType = "restart"  // an agent had a declared terminal restarted, as its declaration allows
	EventSignal   EventType = "signal"   // a signal was sent to the processes in a terminal
	EventInput    EventType = "input"    // an agent typed into a terminal of its own; Line has the beginning of the text
	EventLend     EventType = "lend"     // a terminal was announced at a host
	EventUnlend   EventType = "unlend"   // a terminal was withdrawn from a host
	EventWatch    EventType = "watch"    // a watcher at a host came or went, according to the host
	EventFetch    EventType = "fetch"    // somebody at a host has asked a lent port, according to the host
	EventDispose  EventType = "dispose"  // a host ended the lending
	EventPromote  EventType = "promote"  // an agent's terminal became the person's
	EventRefusal  EventType = "refusal"  // an actor was refused an operation on a terminal
	EventCall     EventType = "call"     // an agent at a host called a tool
	EventTools    EventType = "tools"    // tools are offered to sessions at a host, or are not any more
	EventGrant    EventType = "grant"    // a standing approval began, was revoked or expired
	EventPair     EventType = "pair"     // a host was paired
	EventUnpair   EventType = "unpair"   // a host was forgotten
	EventConnect  EventType = "connect"  // a host has let this machine in
	EventToken    EventType = "token"    // a token for the local door was made, renewed or revoked
	EventNotify   EventType = "notify"   // a URL for notifications was added or removed
	EventStart    EventType = "start"    // the daemon started, with a sum of the rules in force
	EventStop     EventType = "stop"     // the daemon ended
)

// Event is one line of the audit log. Empty fields are left out. There is no field for
// output or values of the environment. Of input, only the beginning of text that agents
// type is kept (EventInput), and known forms of credentials in commands are replaced.
type Event struct {
	Time     time.Time // zero means now
	Type     EventType
	Actor    term.Actor
	Named    string // the host's name for the actor, an agent at that host
	Door     string
	Terminal term.ID
	Host     string // of lend, unlend, dispose, pair, unpair, connect, call, and of a spawn that is lent at once
	Argv     []string
	Line     string
	Cwd      string
	EnvNames []string
	Decision Decision // zero when nothing was decided
	Detail   string   // a sentence with further details
}
