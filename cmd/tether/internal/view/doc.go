// package view shows the output of terminals at the person's own terminal, or writes it to a file or pipe: one terminal as it is (Stream),
// several side by side line by line (Lines), or as plain text (Plain). What could act on the person's terminal is left out (Safe), and what
// programs have changed there can be put back (Modes). Nothing here is safe for concurrent use, and nothing starts a goroutine.
package view

import "tether/ahp"

// View shows one terminal. Its methods fail only if the writer below fails.
type View interface {
	// Resync shows a state that replaces everything since the last shown output.
	Resync(s ahp.TerminalState) error
	Data(p []byte) error
	Action(a ahp.Action) error
}
