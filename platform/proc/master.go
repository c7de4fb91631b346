package proc

import "errors"

// ErrNoPty is returned by MasterHolders for a terminal that is no pseudo-terminal, such as a console.
var ErrNoPty = errors.New("the terminal is no pseudo-terminal")

// MasterHolders returns the processes that have the other end of a process's controlling terminal open: its emulator, a multiplexer,
// sshd, script(1). It leaves out those in the terminal's own session. first is looked at before all others, and is the only one
// returned if it is one: it is the process that is expected. Processes that may not be looked at are not found.
//
// It returns errors.ErrUnsupported where the system does not tell, which is everywhere but on Linux. It takes about a tenth of a
// millisecond if first is one, else as long as looking through the open files of all processes.
func MasterHolders(of Info, first int) ([]int, error) { return masterHolders(of, first) }
