package term

import (
	"errors"
	"fmt"
)

var (
	// ErrNotFound: no such terminal, or none that the actor may see.
	ErrNotFound = errors.New("no such terminal")
	// ErrExited: the terminal's child has ended, so it takes no input, size or signal any
	// more.
	ErrExited = errors.New("the terminal has exited")
	// ErrPrivate: a private terminal cannot be lent.
	ErrPrivate = errors.New("the terminal is private")
	// ErrLeft: the connection to the terminal's holder has ended, so this pool cannot
	// control the terminal any more.
	ErrLeft = errors.New("the terminal's holder is out of reach")
	// ErrClosed: the pool is shutting down.
	ErrClosed = errors.New("the daemon is shutting down")
)

// AmbiguousError is returned when a name or the beginning of an id fits several
// terminals.
type AmbiguousError struct {
	Ref string
	IDs []ID
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q matches %d terminals: %v", e.Ref, len(e.IDs), e.IDs)
}

// SpecError names the fault of a Spec.
type SpecError struct {
	Field string // in words: "size", "name", "command"
	Err   error
}

func (e *SpecError) Error() string { return e.Field + ": " + e.Err.Error() }

func (e *SpecError) Unwrap() error { return e.Err }
