package proc

// Reading says whether a program in the foreground of a terminal waits for its keyboard.
type Reading struct {
	Waits Waits
	// Pid is the process that waits, if one does.
	Pid int
	// Alone says that nothing else happens in the foreground: the process has one thread, which waits for the keyboard alone and without
	// a limit of time, and all others there are those that have started it.
	Alone bool
	// Timed says that it waits for a limited time.
	Timed bool
	// Relays says that it has the other end of a pseudo-terminal open, so that what it reads is for somebody else.
	Relays bool
}

// Waits is whether somebody does.
type Waits uint8

// The answers.
const (
	WaitsUnknown Waits = iota // the system does not tell, or there is a program that may not be looked at
	WaitsNot
	WaitsForKeys
)

// ReadsKeyboard looks who in the foreground of the terminal that the process leader was started in waits for its keyboard. It does not
// block. It takes about a tenth of a millisecond for a program of one thread.
//
// On Linux it may look at programs of the same user that let themselves be debugged; where the kernel's Yama restricts that, only at what
// this process has started. Elsewhere the system does not tell.
func ReadsKeyboard(leader int) Reading { return readsKeyboard(leader) }

// Argv returns the arguments of a process, nil where they cannot be read.
func Argv(pid int) []string { return argvOf(pid) }
