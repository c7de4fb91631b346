// Package tty is the person's own terminal, at which a command runs: its size, its raw mode, and input without echo. It is not for lent
// terminals: package pty runs those.
//
//	if tty.Is(os.Stdin) {
//	restore, err := tty.Raw(os.Stdin)
//	…
//	defer restore()
//	}
package tty

import (
	"context"
	"os"
	"time"

	"golang.org/x/term"
)

// Is reports whether f is a terminal.
func Is(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// Size returns the size of the terminal f in cells; ok is false if it is not known.
func Size(f *os.File) (cols, rows int, ok bool) {
	cols, rows, err := term.GetSize(int(f.Fd()))
	return cols, rows, err == nil && cols > 0 && rows > 0
}

// ReadSecret reads a line without echo. When ctx ends first it restores the terminal and returns ctx's error; the reading then goes on in
// the background until a line is typed, so the program should end.
func ReadSecret(ctx context.Context, f *os.File) (string, error) {
	return readSecret(ctx, f, term.ReadPassword)
}

// beginning is how long reading may take to begin: to switch off the echo.
const beginning = time.Second

func readSecret(ctx context.Context, f *os.File, readPassword func(fd int) ([]byte, error)) (string, error) {
	fd := int(f.Fd())
	state, err := term.GetState(fd)
	if err != nil {
		return "", err
	}
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1) // 1: the reader ends even when nobody waits any more
	go func() {
		text, err := readPassword(fd)
		read <- line{text, err}
	}()
	select {
	case l := <-read:
		return string(l.text), l.err
	case <-ctx.Done():
	}
	// Without echo is how the terminal would stay if it were restored before the reader has begun.
	for began := time.Now(); time.Since(began) < beginning; {
		if now, err := term.GetState(fd); err != nil || *now != *state {
			break
		}
		select {
		case <-read: // which has restored it
			return "", ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	_ = term.Restore(fd, state)
	return "", ctx.Err()
}

// EndOfInput is the input with which a person ends a program's input, at the start of a line or within one.
func EndOfInput(atLineStart bool) []byte {
	if atLineStart {
		return []byte(endOfInput)
	}
	return []byte(endOfLine + endOfInput)
}
