package pty

import "tether/platform/proc"

// Look is how a terminal handles typed input, at the moment of the look.
type Look struct {
	Lines   bool // whole lines, which can be edited before they are sent (canonical mode)
	Echo    bool // typed text is shown
	Front   int  // leader of the process group in the foreground, or 0
	Reading proc.Reading
}

// Secret reports whether lines are taken and not shown, as programs ask for passwords.
func (l Look) Secret() bool { return l.Lines && !l.Echo }
