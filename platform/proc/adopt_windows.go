package proc

// KeepsOrphans says whether a process can know what one that it has started leaves behind, see AgentJob.
const KeepsOrphans = true

// AdoptOrphans does nothing and reports no error: a job needs no parents to know what is in it, see pty.PTY.Left.
func AdoptOrphans() error { return nil }

// ReapOrphans returns at once: nothing was adopted.
func ReapOrphans(int, <-chan struct{}) {}

// WaitForAll returns at once: nothing was adopted.
func WaitForAll() {}

// Children reports false: nothing was adopted.
func Children() bool { return false }
