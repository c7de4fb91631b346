// Package view shows the output of terminals at the person's own terminal, or writes it
// to a file or pipe: one terminal unchanged (Stream), several terminals line by line
// (Lines), or plain text (Plain). Safe removes sequences that would act on the person's
// terminal. No type is safe for concurrent use, and none starts a goroutine.
package view

import "tether/ahp"

// View shows one terminal. Its methods fail only if its writer fails.
type View interface {
	// Resync shows the terminal's state after output was missed. It leaves out text that
	// it recognises as shown before.
	Resync(s ahp.TerminalState) error
	Data(p []byte) error
	Action(a ahp.Action) error
}
