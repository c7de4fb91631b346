package policy

import (
	"crypto/sha256"
	"fmt"
	"strings"

	"tether/agent/term"
	"tether/internal/clip"
)

// The doors, as rules and the audit log name them.
const (
	DoorCLI = "cli" // the command line, over the local socket
	DoorMCP = "mcp"
	DoorACP = "acp"
	DoorWS  = "ws"  // the local WebSocket and POST /pty/spawn
	DoorAHP = "ahp" // the uplink: agents at hosts
	// DoorConfig is the configuration file, which declares terminals.
	DoorConfig = "config"
)

// Request is a command that a principal wants to run. The engine does not change or keep
// its slices.
type Request struct {
	Door  string // one of the constants, "" for none
	Actor term.Actor
	// Named is a host's name for its own agent. It is only shown: decisions use Actor.
	Named string
	Argv  []string // the command to execute, or
	Line  string   // a line for a shell, used instead of Argv
	Shell string   // the shell for Line, by name or path; "" means a POSIX shell
	Cwd   string   // absolute
	// Env are the variables that the request itself sets, NAME=value, besides those that
	// the child gets anyway. An approval covers these values alone; Question documents
	// who sees them.
	Env []string
	// Background says that the terminal is the agent's own, not visible to the person; it
	// counts against the limits for such terminals.
	Background bool
	// Approved names who has approved exactly this request at the door, such as "editor".
	// It answers a question; it does not lift a denial.
	Approved string
	// Setting says that this is no command, but a change of the daemon's settings: Line
	// is the changed part of the configuration. See Confirm.
	Setting bool
	// Again says that the requester repeats the request when it is told to. Spawn then
	// waits at most policy.ask_wait for an answer; after that the question stays, and the
	// repeated request receives the answer.
	Again bool

	bound [sha256.Size]byte // sum over Env and scripts, set by bind
}

// Who returns the name that people are shown for an agent at a host, "" if the host gives
// none.
func (r Request) Who() string { return who(r.Actor, r.Named) }

func who(a term.Actor, named string) string {
	if named = oneLine(strings.ReplaceAll(named, `"`, "")); named == "" || a.At() == "" {
		return ""
	}
	return fmt.Sprintf(`agent "%s" at %s`, clip.Marked(named, 64), a.At())
}

// Effect is the treatment of a request. A larger one is stricter.
type Effect uint8

// The effects.
const (
	Allow Effect = iota + 1
	Ask          // the person decides
	Deny
)

var effectNames = map[Effect]string{Allow: "allow", Ask: "ask", Deny: "deny"}

func (e Effect) String() string { return effectNames[e] }

// MarshalText implements encoding.TextMarshaler.
func (e Effect) MarshalText() ([]byte, error) { return []byte(effectNames[e]), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (e *Effect) UnmarshalText(text []byte) error {
	for effect, name := range effectNames {
		if name == string(text) {
			*e = effect
			return nil
		}
	}
	return fmt.Errorf("%.20q must be allow, ask or deny", text)
}

// Decision is the treatment of a request, and the reason for it.
type Decision struct {
	Effect Effect `json:"effect"`
	Rule   string `json:"rule"`   // ID of the deciding rule
	Reason string `json:"reason"` // a sentence for the caller
}

// Code is the kind of a refusal, for programs.
type Code string

// The codes of refusals.
const (
	CodeBlocked    Code = "blocked"       // a rule denies it
	CodeRate       Code = "rate_limited"  // too many starts in a minute; it may be tried again later
	CodeTooMany    Code = "too_many"      // too many at the same time
	CodeRejected   Code = "rejected"      // denied by the user
	CodeUnanswered Code = "unanswered"    // nobody answered in time
	CodeBusy       Code = "too_many_asks" // too many questions wait already
	CodeWaiting    Code = "waiting"       // the question stays; the same request later takes the answer
)

// Refusal is the error for a request that was not allowed. Its text is meant for the
// requester.
type Refusal struct {
	Decision
	Code Code
}

func (r *Refusal) Error() string { return r.Reason }
