package agenttools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tether/vocab"
)

// Terminals are the terminals that one principal may see. All methods are safe for
// concurrent use.
type Terminals interface {
	// List returns the terminals that the principal may see, oldest first.
	List() []Info
	// Open returns the terminal with exactly this id, or ErrNotFound.
	Open(id string) (Terminal, error)
}

// Placed is a Terminals of this machine, which can tell what the terminals' directories
// show.
type Placed interface {
	Terminals
	// Checkouts returns the git work trees that the directories are in, by terminal,
	// without those that must not be told. With changes it takes some seconds and says
	// whether files have changed, otherwise some milliseconds.
	Checkouts(changes bool) map[string]*vocab.Checkout
}

// Controller is a Terminals whose principal may start terminals and control them.
type Controller interface {
	Terminals
	// Spawn starts a background terminal. The error's text is for the model.
	Spawn(context.Context, SpawnRequest) (Info, error)
	// Promote gives one of the principal's terminals to the person.
	Promote(id string) (Info, error)
	// Kill ends the terminal's processes and returns when they have ended or ctx ends.
	Kill(ctx context.Context, id string) error
	// Write types p. It may wait while the child does not read.
	Write(ctx context.Context, id string, p []byte) error
	// Signal sends a signal, such as "SIGINT", to the process group in the foreground.
	Signal(id, name string) error
}

// Locator is a Terminals of this machine, which can tell which program listens on a port.
type Locator interface {
	Terminals
	// Listens reports whether a program of the terminal listens on the TCP port. known is
	// false if the system does not tell.
	Listens(id string, port int) (yes, known bool)
	// Reach returns the addresses of the loopback interface at which a wait of the
	// principal may connect to the port, for requests of its URLs if url is set. A
	// *ClosedError says that it may not connect at present, any other error that it may
	// never.
	Reach(port int, url bool) ([]string, error)
	// PortUsers says who has each of these ports, as far as the principal may know it; ""
	// says that nobody has. It is nil if the system does not tell, or the principal must
	// not know.
	PortUsers(ports []int) map[int]string
	// Unseen returns the ports of programs of the user that are in no terminal, as far as
	// the principal may know. It looks at all processes, once a second at most.
	Unseen() []UnseenPort
}

// ClosedError says that no program to which a wait may connect listens on a port.
type ClosedError struct {
	Port  int
	Other bool   // another program listens
	By    string // which one, if the principal may know it, in words
}

func (e *ClosedError) Error() string {
	switch {
	case e.By != "":
		return fmt.Sprintf("port %d is used by %s", e.Port, e.By)
	case e.Other:
		return fmt.Sprintf("%s listens on port %d, in no terminal that you see", listenerOther, e.Port)
	}
	return fmt.Sprintf("nothing listens on port %d", e.Port)
}

var (
	// ErrNotFound says that there is no such terminal, or that the principal may not see
	// it.
	ErrNotFound = errors.New("no such terminal")
	// ErrDenied says that the principal sees the terminal but may not do this.
	ErrDenied = errors.New("not allowed")
	// ErrExited says that the terminal's child has ended.
	ErrExited = errors.New("the terminal has exited")
)

// SpawnRequest is a command that an agent wants to run in the background.
type SpawnRequest struct {
	Cwd     string   // directory to start in, as the agent gave it
	Command []string // argv, not empty
	Port    string   // "auto", a number, or "" for none
}

// Owner says whose a terminal is.
type Owner string

// The owners, in the words of the tools.
const (
	OwnerUser  Owner = "user"
	OwnerAgent Owner = "agent" // the principal itself; it does not see the terminals of other agents
)

// Info is a snapshot of a terminal.
type Info struct {
	ID        string
	Cwd       string
	Owner     Owner
	Visible   bool // the person is shown the terminal
	CreatedAt time.Time
	Command   []string // argv of a terminal that an agent started; nil otherwise

	// Machine is the name of the machine on which the terminal runs, if there are several
	// machines; Name then begins with it. "" otherwise.
	Machine     string
	Name, Title string
	Cols, Rows  int
	Pid         int
	Adopted     *vocab.Adopted // the pane that it only reads; nil for one that tether has started
	Notice      string         // something that is not as asked, in one line
	Port        int            // TCP port that it was given at its start, 0 for none
	Running     string         // command line that a shell runs now
	Detection   bool           // the shell reports its commands
	Start, End  int64          // offsets of the readable output: [Start, End)
	Exit        *vocab.Exit    // nil while it runs
	// LentPorts are the ports of a terminal of another machine that are open to the
	// principal. NoPorts says that the machine lends none.
	LentPorts []LentPort
	NoPorts   bool
	// Checkout is the git work tree of Cwd as its machine reports it to a host; nil if it
	// is in none or not told, and for terminals of this machine, see Placed.
	Checkout *vocab.Checkout
	// State is unknown, but for readiness, outside of List. Its Prompt is never set.
	vocab.State
	// Away is the time since when output has not come because the terminal's machine is
	// not connected to the host. It is zero while the machine is connected, and for
	// terminals of this machine.
	Away time.Time
	// AwayWhy says why output does not come, if the machine itself may be connected; ""
	// otherwise.
	AwayWhy string
	// KeptUntil is the time until which the host keeps a terminal whose machine is away,
	// if only the host has it; zero for other terminals.
	KeptUntil time.Time
	// Dropped says why the host does not keep the text of such a terminal any more; ""
	// while it keeps the text, and for other terminals.
	Dropped string
}

// LentPort is a port of a terminal that its person has opened to a host.
type LentPort struct {
	Port  int  `json:"port"`
	Write bool `json:"write,omitempty"` // methods that change something are allowed, too
}

// Terminal is one terminal that the principal may read.
type Terminal interface {
	// Info returns a snapshot.
	Info() Info
	// Commands returns the remembered commands, oldest first.
	Commands() []vocab.Command
	// Read returns a cursor at an offset. If the offset is before Info.Start, the first
	// event is Lost. The caller must Close the cursor.
	Read(from int64) (Reader, error)
}

// ScreenTerminal is a Terminal that knows the screen as it was before the oldest output
// that is kept.
type ScreenTerminal interface {
	Terminal
	// ReadScreen returns that screen, and a cursor at the oldest output. The caller must
	// Close the cursor.
	ReadScreen() (OldScreen, Reader, error)
}

// OldScreen is a screen as bytes.
type OldScreen struct {
	Cols, Rows int
	Replay     []byte // bytes that draw this screen on a fresh terminal of that size
	Exact      bool   // no part of the screen is unknown
	Masked     int    // number of masked places
	Gap        int64  // newest offset at which output is missing; 0 if none is missing
}

// Reader is a cursor into a terminal's output, for one goroutine.
type Reader interface {
	// TryNext returns the next event without waiting; ok is false if there is none yet.
	// Data is in buf, which must hold 64 bytes. It returns io.EOF after the Exited event.
	TryNext(buf []byte) (ev Event, ok bool, err error)
	// Next does the same as TryNext, but waits for an event. It returns ctx's error when
	// ctx ends.
	Next(ctx context.Context, buf []byte) (Event, error)
	// Close ends the reader.
	Close()
}

// Event is one step of a Reader. Besides Off and Masked at most one field is set; skip an
// event with none.
type Event struct {
	Data     []byte         // bytes as the child wrote them, except for masked ones
	Masked   int            // number of masked places in Data; a place that spans events counts in its first event
	Off      int64          // offset after the event
	Lost     int64          // bytes that were dropped before they could be read
	Missing  int64          // number of bytes that are missing here; the text before this event says so
	Finished *vocab.Command // a command of the shell has ended
	Resized  *[2]int        // columns and rows that the terminal has from here on
	Dir      string         // directory that the terminal is in from here on, if it is known
	Exited   bool           // the child has ended; this is the last event
}
