package output_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"testing"

	"tether/internal/output"
)

// full takes so many writes, and no more.
type full struct {
	bytes.Buffer
	left int
	err  error
}

func (f *full) Write(p []byte) (int, error) {
	if f.left--; f.left < 0 {
		return 0, f.err
	}
	return f.Buffer.Write(p)
}

func TestWriter(t *testing.T) {
	own := errors.New("no such terminal")
	fails := &full{left: 1, err: &fs.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}}
	w := output.New(fails)
	fmt.Fprint(w, "one")
	if w.Err() != nil || w.Outcome(nil) != nil || w.Outcome(own) != own {
		t.Errorf("after a good write: %v, %v, %v", w.Err(), w.Outcome(nil), w.Outcome(own))
	}
	fmt.Fprint(w, "two")
	failed := w.Err()
	if !errors.Is(failed, syscall.EPIPE) || failed.Error() != "write to standard output: "+syscall.EPIPE.Error() {
		t.Errorf("the failed write: %v", failed)
	}
	fails.left, fails.err = 1, io.ErrShortWrite
	if _, err := fmt.Fprint(w, "three"); err != failed || fails.String() != "one" {
		t.Errorf("a write after it: %v; written: %q", err, fails.String())
	}
	for _, c := range []struct{ returned, want error }{{nil, failed}, {failed, failed}, {fmt.Errorf("the session: %w", failed), failed}, {own, own}} {
		if got := w.Outcome(c.returned); got != c.want {
			t.Errorf("a command that returned %v ends with %v, want %v", c.returned, got, c.want)
		}
	}
}
