// Package shells is about the shells of a host itself: terminals whose processes run at
// the host, and not at a client's machine. A host without a Runner has none.
package shells

import (
	"context"

	"tether/ahp"
)

// Runner starts shells. Start may be called from any goroutine.
type Runner interface {
	// Start starts a shell. It may take a while; ctx ends with the host.
	Start(ctx context.Context, r Request) (Process, error)
}

// Request is what a client asks for.
type Request struct {
	URI  string
	Name string // may be empty
	Cwd  string // a file: URI or a path; empty means the runner's choice
	Cols int    // 1 to 1000
	Rows int    // 1 to 1000
}

// Process is a running shell. One goroutine calls Next; the other methods may be called
// from any goroutine and must not block for long.
type Process interface {
	// Next waits for the next event, which is valid until the next call. After a
	// TerminalExited action, or when ctx ends, it returns an error.
	Next(ctx context.Context) (Event, error)
	// Input types text. An error is shown to the client that typed.
	Input(text string) error
	// Resize sets the size.
	Resize(cols, rows int) error
	// Kill ends the process and everything it started, and returns without waiting for
	// that. It may be called again.
	Kill()
}

// Event is either text or an action.
type Event struct {
	Text   []byte     // output; never ends inside a character
	Action ahp.Action // any terminal action except data, output, input and claimed; nil if there is text
}

// Reporter is a Process that knows whether its shell will report its commands. Other
// processes do not report any.
type Reporter interface {
	Process
	// Reports says that there will be command actions, unless the shell's start-up files
	// prevent that.
	Reports() bool
}

// Inspector is a Process that knows the programs in it. Its methods may ask the system
// about processes.
type Inspector interface {
	Process
	// Command is the started command.
	Command() []string
	// Foreground is the command line that has the terminal's keyboard, or a name for it;
	// empty if that is the shell itself.
	Foreground() string
}
