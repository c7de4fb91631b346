package proc

// Foreground is the process group that has the keyboard of a terminal.
type Foreground struct {
	Pid  int      // leader of the process group in the foreground
	Argv []string // its arguments, nil where they cannot be read
	// NoEcho says that the terminal takes whole lines and does not show them, as when a password is asked for.
	NoEcho bool
}

// Front returns the foreground of the terminal in which the process pid was started; false if it cannot be found out. It does not block.
func Front(pid int) (Foreground, bool) { return front(pid) }
