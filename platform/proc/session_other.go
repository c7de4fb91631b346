//go:build !linux && !darwin && !windows

package proc

import (
	"os"
	"os/exec"
)

// StartSession is not written for this system yet and returns ErrUnsupported.
func StartSession(string, []string, []string, ...*os.File) (*os.Process, error) {
	return nil, ErrUnsupported
}

// InSession changes nothing: what a session is, is not known of this system yet.
func InSession(*exec.Cmd) {}

// Inherited returns nil.
func Inherited(int) *os.File { return nil }

// StopSignals returns a channel that gets nothing.
func StopSignals() <-chan os.Signal { return nil }

// Terminate returns ErrUnsupported.
func Terminate(*os.Process) error { return ErrUnsupported }
