package pty

import "tether/platform/proc"

// Look is how a terminal takes what is typed, at the moment of the look.
type Look struct {
	Lines   bool // whole lines, which can be edited before they are sent (canonical mode)
	Echo    bool // shows what is typed
	Front   int  // leader of the process group in the foreground, 0 where there is none
	Reading proc.Reading
}

// Secret reports whether lines are taken and not shown, as programs ask for passwords.
func (l Look) Secret() bool { return l.Lines && !l.Echo }
