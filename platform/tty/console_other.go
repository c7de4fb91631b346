//go:build !windows

package tty

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Raw switches f to raw mode: the program gets every key, and the terminal neither echoes
// nor edits keys nor turns them into signals. restore undoes it and may be called twice.
func Raw(f *os.File) (restore func(), err error) {
	state, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	return func() { _ = term.Restore(int(f.Fd()), state) }, nil // fails only if the terminal is gone
}

// Keys returns the input typed at f.
func Keys(f *os.File) io.Reader { return f }

// ^D ends the read that waits for the terminal: at the start of a line the read returns
// nothing, which is the end of the input; within a line it returns the text typed so far.
const (
	endOfLine  = "\x04"
	endOfInput = "\x04"
)
