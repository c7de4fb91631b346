package proc

// Reading says whether a program in the foreground of a terminal waits for its keyboard.
type Reading struct {
	Waits Waits
	// Pid is the process that waits, if one does.
	Pid int
	// Alone reports that nothing else happens in the foreground: the process has one thread, which waits only for the keyboard and without a
	// time limit, and all other processes there are its ancestors.
	Alone bool
	// Timed says that it waits for a limited time.
	Timed bool
	// Relays reports that it has the other end of a pseudo-terminal open, so that the input it reads is meant for another program.
	Relays bool
}

// Waits tells whether a process waits for the keyboard.
type Waits uint8

// The answers.
const (
	WaitsUnknown Waits = iota // the system does not tell, or there is a program that may not be looked at
	WaitsNot
	WaitsForKeys
)

// ReadsKeyboard finds the process that waits for the keyboard, in the foreground of the terminal in which the process leader was started.
// It does not block. It takes about a tenth of a millisecond for a program with one thread.
//
// On Linux it may examine programs of the same user that may be debugged; if the kernel's Yama restricts that, only descendants of this
// process. Other systems do not report it.
func ReadsKeyboard(leader int) Reading { return readsKeyboard(leader) }

// Argv returns the arguments of a process, nil where they cannot be read.
func Argv(pid int) []string { return argvOf(pid) }
