package proc

import "errors"

// ErrNoPty is returned by MasterHolders for a terminal that is no pseudo-terminal, such as a console.
var ErrNoPty = errors.New("the terminal is no pseudo-terminal")

// MasterHolders returns the processes that have the other end of a process's controlling terminal open: its emulator, a multiplexer, sshd,
// script(1). It leaves out processes in the terminal's own session. first is the expected process: it is examined first and, if it is a
// holder, is the only result. Processes that may not be examined are not found.
//
// It returns errors.ErrUnsupported on every system except Linux. It takes about a tenth of a millisecond if first is a holder, else as long
// as a look through the open files of all processes.
func MasterHolders(of Info, first int) ([]int, error) { return masterHolders(of, first) }
