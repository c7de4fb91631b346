package shellint

// Tracker makes commands of the marks of one terminal. It is pure: no clock, no I/O. The zero value is ready. It is not
// safe for concurrent use; the slices it returns are valid until its next method call.
//
// A command opens at a C and closes at the next D; a prompt or another C closes it without an exit code. It is announced only
// when it is certain that it is a command: at C if its line is known and not empty, else at the first byte of output, or at D.
// So Enter on an empty line, which some shells report as C and prompt, is never seen.
//
// Only trusted marks count.
type Tracker struct {
	// Eager announces every command at its C.
	Eager bool
}

// CommandEvent is a step in the life of a command.
type CommandEvent struct {
	Kind   EventKind
	ID     int64      // numbers the commands of the terminal from 1 in the order of their C; unannounced ones leave no gap
	Off    int64      // raw offset: where the output starts (CommandOpened), where it ends (CommandClosed), of the mark (CommandNamed)
	Line   string     // the command line, if Source says that it is known
	Source LineSource // where Line came from; SourceNone if unknown
	Exit   Exit       // for CommandClosed
	Reason CloseReason
}

// EventKind says what happened to a command.
type EventKind uint8

// The steps of a command.
const (
	CommandOpened EventKind = iota + 1
	CommandClosed
	CommandNamed // its line became known after it closed (nushell)
)

// LineSource says where a command line was learnt.
type LineSource uint8

// The sources of a command line.
const (
	SourceNone   LineSource = iota // unknown
	SourceLine                     // OSC 633 E
	SourceOption                   // cmdline= or cmdline_url= of the C mark
	SourceLate                     // OSC 633 E after the command closed
	SourceInput                    // what was written to the terminal after its prompt, exactly one line
)

// CloseReason says what closed a command.
type CloseReason uint8

// The reasons for CommandClosed.
const (
	ClosedByEnd    CloseReason = iota + 1 // its D
	ClosedByPrompt                        // the next prompt, without a D
	ClosedByOutput                        // another C
	ClosedByEOF                           // the end of the stream
)

// Feed handles a whole Result in stream order: its marks, and the plain output between them.
func (t *Tracker) Feed(r *Result) []CommandEvent { return nil }

// Mark handles one mark. Marks must come in stream order, with Data called for the output between them.
func (t *Tracker) Mark(m *Mark) []CommandEvent { return nil }

// Data says that plain output was seen that ends at raw offset end.
func (t *Tracker) Data(end int64) []CommandEvent { return nil }

// Input tells what is written to the terminal, the source of last resort for a command line.
func (t *Tracker) Input(p []byte) {}

// Announce opens the pending command, if any, although nothing proves it yet. A caller uses it some milliseconds after a
// C that has no line and no output, as "sleep 100" under a shell that reports no lines.
func (t *Tracker) Announce() []CommandEvent { return nil }

// Close closes an open command at the end of the stream, off, with the exit status of the process.
func (t *Tracker) Close(off int64, exit Exit) []CommandEvent { return nil }

// Detected says whether a trusted OSC 133 or 633 was seen, so that commands can be expected.
func (t *Tracker) Detected() bool { return false }
