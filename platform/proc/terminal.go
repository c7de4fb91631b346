package proc

import "errors"

// Foreground is the process group that has the keyboard of a terminal.
type Foreground struct {
	Pid  int      // leader of the process group in the foreground
	Argv []string // its arguments, nil where they cannot be read
	// NoEcho says that the terminal takes whole lines and does not show them, as when a
	// password is asked for.
	NoEcho bool
}

// Front returns the foreground of the terminal in which the process pid was started;
// false if it cannot be found out. It does not block.
func Front(pid int) (Foreground, bool) { return front(pid) }

// Reading says whether a program in the foreground of a terminal waits for its keyboard.
type Reading struct {
	Waits Waits
	// Pid is the process that waits, if one does.
	Pid int
	// Alone reports that nothing else happens in the foreground: the process has one
	// thread, which waits only for the keyboard and without a time limit, and all other
	// processes there are its ancestors.
	Alone bool
	// Timed says that it waits for a limited time.
	Timed bool
	// Relays reports that it has the other end of a pseudo-terminal open, so that the
	// input it reads is meant for another program.
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

// ReadsKeyboard finds the process that waits for the keyboard, in the foreground of the
// terminal in which the process leader was started. It does not block. It takes about a
// tenth of a millisecond for a program with one thread.
//
// On Linux it may examine programs of the same user that may be debugged; if the kernel's
// Yama restricts that, only descendants of this process. Other systems do not report it.
func ReadsKeyboard(leader int) Reading { return readsKeyboard(leader) }

// Argv returns the arguments of a process, nil where they cannot be read.
func Argv(pid int) []string { return argvOf(pid) }

// ErrNoPty is returned by MasterHolders for a terminal that is no pseudo-terminal, such
// as a console.
var ErrNoPty = errors.New("the terminal is no pseudo-terminal")

// MasterHolders returns the processes that have the other end of a process's controlling
// terminal open: its emulator, a multiplexer, sshd, script(1). It leaves out processes in
// the terminal's own session. first is the expected process: it is examined first and, if
// it is a holder, is the only result. Processes that may not be examined are not found.
//
// It returns errors.ErrUnsupported on every system except Linux. It takes about a tenth
// of a millisecond if first is a holder, else as long as a look through the open files of
// all processes.
func MasterHolders(of Info, first int) ([]int, error) { return masterHolders(of, first) }
