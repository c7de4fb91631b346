package shellint

// CommandEvent is a step in the life of a command.
type CommandEvent struct {
	Kind   EventKind
	ID     int64      // numbers the commands of the terminal from 1 in the order of their C; unannounced ones leave no gap
	Off    int64      // raw offset: where the output starts (CommandOpened), where it ends (CommandClosed), of the mark (CommandNamed)
	Line   string     // the command line, if Source says that it is known
	Source LineSource // where Line came from; SourceNone if unknown
	Exit   Exit       // for CommandClosed
	Reason CloseReason

	// Verified says that trusted marks made the command. Any program that prints can make
	// the others.
	Verified bool
	// Within is the ID of the trusted command that runs the shell of this one, as ssh
	// does; 0 for none.
	Within int64
}

// EventKind is the kind of change of a command.
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
	SourceInput                    // the bytes written to the terminal after its prompt, exactly one line
)

// CloseReason is the reason why a command closed.
type CloseReason uint8

// The reasons for CommandClosed.
const (
	ClosedByEnd     CloseReason = iota + 1 // its D
	ClosedByPrompt                         // the next prompt, without a D
	ClosedByOutput                         // another C
	ClosedByEOF                            // the end of the stream
	ClosedByOutside                        // a trusted mark of the shell outside
)
