//go:build !linux && !darwin

package proc

import "os"

// StartSession is not written for this system yet and returns ErrUnsupported.
func StartSession(string, []string, []string, ...*os.File) (*os.Process, error) {
	return nil, ErrUnsupported
}

// StopSignals returns a channel that gets nothing.
func StopSignals() <-chan os.Signal { return nil }

// Terminate returns ErrUnsupported.
func Terminate(*os.Process) error { return ErrUnsupported }
