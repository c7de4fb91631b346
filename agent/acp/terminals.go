package acp

import (
	"context"
	"fmt"
)

// Terminals runs commands for one agent. Methods may be called concurrently. An error that is a *Failure is reported to the agent; others
// are reported as internal.
type Terminals interface {
	// Spawn starts a command in a terminal of its own and returns its id. It may wait for the person's approval, and use Command.Ask for it;
	// when ctx ends before it has returned, nothing is left running.
	Spawn(context.Context, Command) (id string, err error)
	// Follow streams the terminal's output from an offset on, see Event. The caller must Close the stream, which ends with ctx too.
	Follow(ctx context.Context, id string, from int64) (Stream, error)
	// Kill ends the terminal's process tree, asking first, and returns when it is gone. It is idempotent.
	Kill(ctx context.Context, id string) error
	// Revive restarts the daemon that serves the terminals after it crashed.
	Revive(context.Context) error
}

// Stream is a terminal's output. Next is for one goroutine; it returns ErrStopped when the serving side ended in order, and any other error
// when it crashed.
type Stream interface {
	Next() (Event, error)
	Close()
}

// Command is a command to run.
type Command struct {
	Argv []string // or
	Line string   // for the system's shell
	Cwd  string   // absolute
	Env  []string // NAME=value, in addition to those of a login
	Name string   // for people
	// Ask, if not nil, asks the person whether the command may run, and says why it is asked. It waits for the answer or ctx. An error means
	// that nobody wants the command any more.
	Ask func(ctx context.Context, reason string) (allowed bool, err error)
}

// Event is one of: Data, Lost, Exit.
type Event struct {
	Data   []byte // valid UTF-8 with escape sequences; valid until the next call
	Masked int    // places of Data that the agent is not shown
	Lost   int64  // bytes that are missing before this output
	Exit   *Exit  // the last event
	Next   int64  // offset to follow from after this event
}

// Exit is how a command ended.
type Exit struct {
	Code   int
	Signal string // the signal that ended it, "" for none
	// Lost says why nothing is known of the end; "" if it is known.
	Lost string
}

// FailureKind is the kind of a Failure.
type FailureKind uint8

// The kinds of Failure.
const (
	Internal    FailureKind = iota
	Invalid                 // something else of the request is not usable
	CannotStart             // the program or the directory is not usable
	Gone                    // no such terminal
	Denied                  // the policy, a limit or a person said no
)

// Failure is an error for the agent.
type Failure struct {
	Kind    FailureKind
	Message string // the fault
	Hint    string // the remedy, may be ""
}

func (f *Failure) Error() string { return f.Message }

func invalid(format string, args ...any) *Failure {
	return &Failure{Kind: Invalid, Message: fmt.Sprintf(format, args...)}
}
