// Package output writes the standard output of a command, and keeps the error if that
// fails.
//
//	out := output.New(os.Stdout)
//	err := run(out) // prints without looking at errors
//	err = out.Outcome(err)
//
// A command needs to check its writes only where it goes on for long, or changes
// something, after printing.
package output

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync/atomic"
)

// Writer is the standard output of a command. After the first failed write it writes
// nothing more, and returns the same error.
type Writer struct {
	to     io.Writer
	failed atomic.Pointer[error] // of the first failed write; set once
}

// New returns a Writer that passes everything on to to. Write may be called concurrently
// if to allows that.
func New(to io.Writer) *Writer { return &Writer{to: to} }

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	if err := w.Err(); err != nil {
		return 0, err
	}
	n, err := w.to.Write(p)
	if err != nil {
		if at, ok := errors.AsType[*fs.PathError](err); ok { // its path is only a name for this process, such as /dev/stdout
			err = at.Err
		}
		err = fmt.Errorf("write to standard output: %w", err)
		w.failed.CompareAndSwap(nil, &err)
		return n, w.Err()
	}
	return n, nil
}

// Err returns the error of the first failed write, or nil.
func (w *Writer) Err() error {
	if err := w.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Outcome returns the error with which a command ends that has returned err. A failed
// write is an error even if the command has not looked at it, but it hides no other
// error.
func (w *Writer) Outcome(err error) error {
	failed := w.Err()
	if failed != nil && (err == nil || errors.Is(err, failed)) { // without what the command has added, such as the name of another file
		return failed
	}
	return err
}
