// Package vocab has the words in which the parts of tether speak of a terminal: how it
// ended, what its shell runs, whether it waits for somebody. Each is one type from the
// core to every interface. The names in JSON are those of the interface for programs,
// see docs/LOCAL-API.md and docs/CLI.md; agents' tools have names of their own for some.
package vocab

import "time"

// Exit is how a terminal ended.
type Exit struct {
	Code   int        `json:"code"`             // as the system reports it; 128+n when signal n killed the leader
	Signal string     `json:"signal,omitempty"` // the signal's name, absent for an ordinary exit
	Reason ExitReason `json:"-"`
	At     time.Time  `json:"at"`
}

// ExitReason says who ended a terminal.
type ExitReason string

// The reasons.
const (
	ExitItself ExitReason = "exited"  // the child, by itself
	ExitKilled ExitReason = "killed"  // somebody killed it, a host disposed of it, or its daemon ended it
	ExitIdle   ExitReason = "timeout" // a time without input or output, or its time limit, was over
	ExitLost   ExitReason = "lost"    // the holder was killed: how the child ended is unknown, Code is -1
)

// Command is one command line of a shell with integration.
type Command struct {
	N          int       `json:"n"`
	Line       *string   `json:"line,omitempty"` // absent if the shell did not report it
	Started    time.Time `json:"started"`
	DurationMs *float64  `json:"duration_ms,omitempty"`
	Exit       *int      `json:"exit,omitempty"` // absent while it runs, or unknown
	Running    bool      `json:"running"`
	Verified   bool      `json:"verified"`         // false for marks of a foreign shell integration
	Within     int       `json:"within,omitempty"` // n of the verified command, such as ssh, during which this one ran
	Start      int64     `json:"start"`            // raw offset of its output
	End        int64     `json:"end"`              // raw offset after it
	// Checkout is of its directory when it started.
	Checkout *Checkout `json:"checkout,omitempty"`
}

// Text returns the command line, "" if the shell did not report it.
func (c *Command) Text() string {
	if c.Line == nil {
		return ""
	}
	return *c.Line
}

// Ms returns how long the command ran, in whole milliseconds; 0 while it runs.
func (c *Command) Ms() int64 {
	if c.DurationMs == nil {
		return 0
	}
	return int64(*c.DurationMs)
}

// Show replaces the texts by what show makes of them. Copies of c keep theirs.
func (c *Command) Show(show func(string) string) {
	if c.Line != nil {
		c.Line = new(show(*c.Line))
	}
	if c.Checkout != nil {
		c.Checkout = new(*c.Checkout)
		c.Checkout.Show(show)
	}
}

// Took sets how long the command ran.
func (c *Command) Took(d time.Duration) { c.DurationMs = new(float64(d.Microseconds()) / 1000) }

// InputState is how the program in the foreground uses its terminal.
type InputState string

// The states. The first two are for people to act on.
const (
	InputAwaiting   InputState = "awaiting_input"  // it reads a line, or a key behind a prompt
	InputSecret     InputState = "awaiting_secret" // it reads a line without echo
	InputRunning    InputState = "running"         // it prints
	InputQuiet      InputState = "quiet"           // it prints nothing and asks nothing
	InputFullScreen InputState = "full_screen"     // it draws on the alternate screen
	InputUnknown    InputState = "unknown"         // the system does not tell
)

// Awaits reports whether somebody is to type.
func (s InputState) Awaits() bool { return s == InputAwaiting || s == InputSecret }

// Keyboard is the state of input of a terminal. The zero value is that of a terminal
// whose state is not examined.
type Keyboard struct {
	// Input is awaiting_input, awaiting_secret, running, quiet, full_screen or unknown;
	// absent after the exit.
	Input InputState `json:"input,omitempty"`
	// InputSince is the time of the last output or input for all states but running.
	InputSince time.Time `json:"input_since,omitzero"`
	// Prompt is the text before the cursor on its line while Input is InputAwaiting, at
	// most 200 bytes.
	Prompt string `json:"-"`
}

// ReadyState says whether the condition of a declared terminal holds.
type ReadyState string

// The states. A terminal without a condition has none.
//
//	ReadyStarting ──▶ ReadyYes ──▶ ReadyStopped   (the exit)
//	     │               ▲                         (it holds after all)
//	     └──▶ ReadyFailed                          (the time limit, or the exit)
const (
	ReadyStarting ReadyState = "starting" // the condition does not hold yet
	ReadyYes      ReadyState = "ready"    // it held once
	ReadyFailed   ReadyState = "failed"   // it did not hold in time and still does not, or the program ended before it held
	ReadyStopped  ReadyState = "stopped"  // it was ready, and its program has ended
)

// Readiness says how far a declared terminal is on its way to being ready. The zero value
// is that of a terminal without a condition.
type Readiness struct {
	Ready      ReadyState `json:"ready,omitempty"` // of a declared terminal: starting, ready, failed or stopped
	ReadySince time.Time  `json:"ready_since,omitzero"`
	ReadyWhy   string     `json:"ready_why,omitempty"` // which condition holds, or why none does
}

// Ended returns what r becomes at the exit.
func (r Readiness) Ended() Readiness {
	switch r.Ready {
	case ReadyStarting:
		return Readiness{ReadyFailed, time.Now(), "its program ended before it was ready"}
	case ReadyYes:
		return Readiness{ReadyStopped, time.Now(), "its program has ended"}
	}
	return r
}

// State is what there is to say of a running terminal besides its output.
type State struct {
	Keyboard
	Readiness
}

// Watchers lists who may watch a terminal at a host and who watches it now, according to
// the host.
type Watchers struct {
	May      []string  `json:"may"`
	Refused  []string  `json:"refused"` // unknown to the host
	Watching []Watcher `json:"watching"`
	More     int       `json:"more"` // beyond those listed
}

// Watcher is a watcher at a host, according to the host.
type Watcher struct {
	Who   string    `json:"who"`
	Kind  string    `json:"kind"` // person, agent, guest or machine
	Since time.Time `json:"since"`
}

// Lent is one terminal at one host.
type Lent struct {
	ID        string     `json:"id"`
	URI       string     `json:"uri"`
	Unacked   int64      `json:"unacked_bytes"` // not known to be at the host
	Lost      int64      `json:"lost_bytes"`    // dropped unsent
	There     bool       `json:"there"`         // the host has the terminal now
	Problem   string     `json:"problem,omitempty"`
	KeptUntil time.Time  `json:"kept_until,omitzero"` // until when an offline host may
	Observers *int       `json:"observers,omitempty"`
	Watchers  *Watchers  `json:"host_says,omitempty"`
	Ports     []LentPort `json:"ports,omitempty"` // open there, or closed
}

// Who sees a terminal at a host if nobody is named.
const (
	LentToEverybody = "everybody"
	LentToAudience  = "audience"
)
