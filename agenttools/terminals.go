package agenttools

import (
	"context"
	"errors"
	"time"
)

// Terminals are the terminals that one principal may see. All methods are safe for concurrent use.
type Terminals interface {
	// List returns the terminals that the principal may see, oldest first.
	List() []Info
	// Open returns the terminal with exactly this id, or ErrNotFound.
	Open(id string) (Terminal, error)
}

// Controller is a Terminals whose principal may start terminals and control them.
type Controller interface {
	Terminals
	// Spawn starts a background terminal. The error's text is for the model.
	Spawn(context.Context, SpawnRequest) (Info, error)
	// Promote gives a terminal of the principal's to the person.
	Promote(id string) (Info, error)
	// Kill ends the terminal's processes and returns when they have ended or ctx ends.
	Kill(ctx context.Context, id string) error
	// Write types p. It may wait while the child does not read.
	Write(ctx context.Context, id string, p []byte) error
	// Signal sends a signal, such as "SIGINT", to the process group in the foreground.
	Signal(id, name string) error
}

// Locator is a Terminals that can tell which program listens on a port of this machine.
type Locator interface {
	Terminals
	// Listens reports whether a program of the terminal listens on the TCP port; known is false where that cannot be found out.
	Listens(id string, port int) (yes, known bool)
}

var (
	// ErrNotFound: no such terminal, or none that the principal may see.
	ErrNotFound = errors.New("no such terminal")
	// ErrDenied: the principal sees the terminal but may not do this.
	ErrDenied = errors.New("not allowed")
	// ErrExited: the terminal's child has ended.
	ErrExited = errors.New("the terminal has exited")
)

// SpawnRequest is a command that an agent wants to run in the background.
type SpawnRequest struct {
	Cwd     string   // as the agent gave it
	Command []string // argv, not empty
}

// Owner says whose a terminal is.
type Owner string

// The owners, in the words of the tools.
const (
	OwnerUser  Owner = "user"
	OwnerAgent Owner = "agent" // the principal itself: others' are not seen
)

// Info is a snapshot of a terminal.
type Info struct {
	ID        string
	Cwd       string
	Owner     Owner
	Visible   bool // to the person
	CreatedAt time.Time
	Command   []string // argv of a terminal that an agent started; nil otherwise

	// Machine is the one on which the terminal runs, where there are several; Name then begins with it.
	Machine     string
	Name, Title string
	Cols, Rows  int
	Pid         int
	Running     string // the command line that a shell runs now
	Detection   bool   // the shell reports its commands
	Start, End  int64  // offsets of the readable output: [Start, End)
	Exit        *Exit  // nil while it runs
	// Input is whether it waits for typed input, InputSince since when; only List sets them, if they are known.
	Input      InputState
	InputSince time.Time
	// Ready says how far a declared terminal is, "" where nobody has said when it is ready.
	Ready      ReadyState
	ReadySince time.Time
	ReadyWhy   string
	// Away is since when its machine has not been connected; zero while it is, and where terminals run on this machine.
	Away time.Time
	// AwayWhy is the reason, if the machine itself may be connected; "" otherwise.
	AwayWhy string
	// KeptUntil is until when a terminal is kept that only the host has while its machine is away; zero for others.
	KeptUntil time.Time
	// Dropped is why such a terminal's text is not kept any more; empty while it is.
	Dropped string
}

// Exit is how a terminal ended.
type Exit struct {
	Code   int
	Signal string // name of the signal that ended it, or ""
	Reason string // "exited", "killed" or "timeout"
	At     time.Time
}

// Command is one command line of a shell that reports them.
type Command struct {
	N          int    `json:"n"`
	Line       string `json:"line,omitempty"` // "" when the shell did not say
	ExitCode   *int   `json:"exitCode,omitempty"`
	Running    bool   `json:"running,omitempty"`
	Verified   bool   `json:"verified"`         // false: marks of a foreign shell integration, which any program can print
	Within     int    `json:"within,omitempty"` // N of the verified command that it ran in, as of a shell inside ssh
	DurationMs int64  `json:"durationMs,omitempty"`
	Start      int64  `json:"start"` // offset of its output
	End        int64  `json:"end"`
}

// Terminal is one terminal that the principal may read.
type Terminal interface {
	// Info returns a snapshot.
	Info() Info
	// Commands returns the remembered commands, oldest first.
	Commands() []Command
	// Read returns a cursor at an offset. If that is older than Info.Start, a Lost event comes first. The caller must Close it.
	Read(from int64) (Reader, error)
}

// ScreenTerminal is a Terminal that knows its screen before the oldest output that it keeps.
type ScreenTerminal interface {
	Terminal
	// ReadScreen returns that screen, and a cursor at that output. The caller must Close it.
	ReadScreen() (OldScreen, Reader, error)
}

// OldScreen is a screen as bytes.
type OldScreen struct {
	Cols, Rows int
	Replay     []byte // makes a fresh terminal of that size the same
	Exact      bool   // nothing of it is unknown
	Masked     int    // places that are masked
	Gap        int64  // an offset at which output is missing, the newest; 0: none
}

// Reader is a cursor into a terminal's output, for one goroutine.
type Reader interface {
	// TryNext returns the next event without waiting; ok is false if there is none yet. Data is in buf, which must hold 64 bytes. It returns
	// io.EOF after the Exited event.
	TryNext(buf []byte) (ev Event, ok bool, err error)
	// Next is TryNext that waits. It returns ctx's error when that ends.
	Next(ctx context.Context, buf []byte) (Event, error)
	// Close ends the reader.
	Close()
}

// Event is one step of a Reader. Besides Off and Masked at most one field is set; skip an event with none.
type Event struct {
	Data     []byte   // bytes as the child wrote them, except for masked ones
	Masked   int      // places of Data that are masked, each in the first event that has some of it
	Off      int64    // the offset after the event
	Lost     int64    // bytes that were dropped before they could be read
	Missing  int64    // bytes that are missing here, as the text before it says
	Finished *Command // a command of the shell has ended
	Resized  *[2]int  // columns and rows from here on
	Dir      string   // the directory from here on, where that is known
	Exited   bool     // the last event
}
