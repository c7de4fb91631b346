package acp

import (
	"context"
	"fmt"
)

// Terminals runs commands for one agent. Methods may be called concurrently. The agent
// gets an error that is a *Failure with its kind, and any other error as an internal one.
type Terminals interface {
	// Spawn starts a command in a new terminal and returns the terminal's id. It may wait
	// for the person's approval, and may ask for it with Command.Ask. If ctx ends before
	// Spawn returns, nothing is left running.
	Spawn(context.Context, Command) (id string, err error)
	// Follow streams the terminal's output from its beginning. The stream ends when ctx
	// does; the caller must still Close it.
	Follow(ctx context.Context, id string) (Stream, error)
	// Kill ends the terminal's process tree, first with a signal that the processes may
	// handle, and returns when all processes are gone. It is idempotent.
	Kill(ctx context.Context, id string) error
}

// Stream is a terminal's output. Next is for one goroutine. It goes on after the daemon
// crashed or was replaced, and returns an error once that cannot be: a Failure of the
// kind Gone if the daemon does not have the terminal.
type Stream interface {
	Next() (Event, error)
	Close() error
}

// Command is a command to run. Either Argv or Line is set.
type Command struct {
	Argv []string // a program and its arguments
	Line string   // a line for the system's shell
	Cwd  string   // absolute
	Env  []string // NAME=value, added to the variables of a login
	Name string   // the terminal's name, for people
	// Ask, if not nil, asks the person whether the command may run. reason says why
	// approval is needed. Ask waits until the person answers or ctx ends. An error means
	// that the command is no longer wanted.
	Ask func(ctx context.Context, reason string) (allowed bool, err error)
}

// Event has exactly one of Data, Lost and Exit.
type Event struct {
	Data   []byte // output: UTF-8 with escape sequences; valid until the next call of Stream.Next
	Masked int    // number of masked places in Data
	Lost   int64  // number of bytes that are missing before the next output
	Exit   *Exit  // the command has ended; the last event
}

// Exit says how a command ended.
type Exit struct {
	Code   int    // negative if the exit status is not known
	Signal string // the signal that ended the command, or ""
	// Lost says why the end of the command is not known; "" if it is known.
	Lost string
}

// FailureKind is the kind of a Failure.
type FailureKind uint8

// The kinds of Failure.
const (
	Internal    FailureKind = iota
	Invalid                 // the request is invalid, other than by CannotStart
	CannotStart             // the program or the directory cannot be used
	Gone                    // no such terminal
	Denied                  // the policy, a limit or a person refused
)

// Failure is an error for the agent.
type Failure struct {
	Kind    FailureKind
	Message string // what is wrong
	Hint    string // what to do about it; may be ""
}

func (f *Failure) Error() string { return f.Message }

func invalid(format string, args ...any) *Failure {
	return &Failure{Kind: Invalid, Message: fmt.Sprintf(format, args...)}
}
