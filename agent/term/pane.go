package term

import (
	"fmt"
	"path/filepath"
	"strings"
)

// AdoptedError refuses an operation on a terminal that only reads a pane of another
// program: what it asks for is done where the pane is.
type AdoptedError struct {
	Op   Op     // 0 for starting it again
	Name string // of the terminal
	From string // the pane, as tether adopt takes it: tmux:%3
}

func (e *AdoptedError) Error() string {
	switch e.Op {
	case OpType:
		return fmt.Sprintf("it was not started by tether, and adopted to be read only; to type here: tether unadopt %s, then tether adopt --type %s", e.Name, e.From)
	case OpResize:
		return fmt.Sprintf("it was not started by tether: %s sets its size", e.program())
	case OpPromote:
		return "it was not started by tether, and is yours already"
	}
	return fmt.Sprintf("%s was not started by tether: do that where it runs, in %s", e.Name, e.From)
}

func (e *AdoptedError) program() string {
	program, _, _ := strings.Cut(e.From, ":")
	return program
}

// refuse returns an error if the terminal reads a pane and op is not for it.
func (o *origin) refuse(op Op) error {
	if o.adopted == nil || op == OpType && o.adopted.Types {
		return nil
	}
	return &AdoptedError{Op: op, Name: o.name, From: o.adopted.From}
}

// dir is the directory in which the child starts. A pane's reader must not keep the
// pane's directory in use.
func (s *Spec) dir() string {
	if s.Adopted == nil {
		return s.Cwd
	}
	return filepath.VolumeName(s.Cwd) + string(filepath.Separator)
}

// pid returns the process whose descendants are the terminal's programs.
func (t *Terminal) pid() int {
	if a := t.origin.adopted; a != nil {
		return a.Pid
	}
	return t.pty.Pid()
}
