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
	N          int       `json:"n"`              // counts from 1
	Line       *string   `json:"line,omitempty"` // absent if the shell did not report it
	Started    time.Time `json:"started"`
	DurationMs *float64  `json:"duration_ms,omitempty"` // absent while it runs
	Exit       *int      `json:"exit,omitempty"`        // absent while it runs, and if the shell did not report it
	Running    bool      `json:"running"`
	Verified   bool      `json:"verified"`         // false for marks of a foreign shell integration, which any program can print
	Within     int       `json:"within,omitempty"` // n of the verified command during which this one ran, such as ssh with a shell at its other end
	Start      int64     `json:"start"`            // raw offset of its output
	End        int64     `json:"end"`              // raw offset after it
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

// Show replaces the command line by what show makes of it. Copies of c keep theirs.
func (c *Command) Show(show func(string) string) {
	if c.Line != nil {
		c.Line = new(show(*c.Line))
	}
}

// Took sets how long the command ran.
func (c *Command) Took(d time.Duration) { c.DurationMs = new(float64(d.Microseconds()) / 1000) }
