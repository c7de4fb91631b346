// Package tty handles the person's own terminal, in which a command runs: its size, its
// raw mode, and input without echo. It is not for lent terminals: package pty runs those.
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

// ReadSecret reads a line without echo. If ctx ends first, it restores the terminal and
// returns ctx's error. A goroutine then continues to read until a line is typed, so the
// program should end.
func ReadSecret(ctx context.Context, f *os.File) (string, error) {
	return readSecret(ctx, f, term.ReadPassword)
}

// beginning is how long a cancelled readSecret waits for its reader to switch off the
// echo.
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
	read := make(chan line, 1) // 1: the reader can end after readSecret has returned
	go func() {
		text, err := readPassword(fd)
		read <- line{text, err}
	}()
	select {
	case l := <-read:
		return string(l.text), l.err
	case <-ctx.Done():
	}
	// Wait until the reader has switched off the echo. If the terminal were restored
	// before that, it would stay without echo.
	for began := time.Now(); time.Since(began) < beginning; {
		if now, err := term.GetState(fd); err != nil || *now != *state {
			break
		}
		select {
		case <-read: // the reader has restored the terminal
			return "", ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
	_ = term.Restore(fd, state)
	return "", ctx.Err()
}

// EndOfInput returns the keys that end a program's input. atLineStart says whether they
// are typed at the start of a line or within one.
func EndOfInput(atLineStart bool) []byte {
	if atLineStart {
		return []byte(endOfInput)
	}
	return []byte(endOfLine + endOfInput)
}
