//go:build !windows

package tty

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Raw hands every key to the program: none is echoed, edited or turned into a signal. restore undoes it and may be called twice.
func Raw(f *os.File) (restore func(), err error) {
	state, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	return func() { _ = term.Restore(int(f.Fd()), state) }, nil // nothing helps when the terminal is gone
}

// Keys returns the input typed at f.
func Keys(f *os.File) io.Reader { return f }

// ^D ends a read: at the start of a line an empty one, within a line one of the text typed so far.
const (
	endOfLine  = "\x04"
	endOfInput = "\x04"
)
