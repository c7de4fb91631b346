//go:build linux || darwin

package tty

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/term"

	"tether/internal/testkit/must"
)

// If ctx ends before the reader has switched off the echo, the echo is on afterwards.
func TestReadSecretIsCalledOffEarly(t *testing.T) {
	person, terminal, err := pty.Open()
	if errors.Is(err, pty.ErrUnsupported) {
		t.Skip(err)
	}
	must.Do(t, err)
	defer person.Close()
	defer terminal.Close()
	before := must.Get(term.GetState(int(terminal.Fd())))(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	begin, read, returned := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := readSecret(ctx, terminal, func(fd int) ([]byte, error) {
			defer close(read)
			<-begin
			return term.ReadPassword(fd)
		})
		returned <- err
	}()
	select {
	case <-returned:
		t.Error("it gives the terminal back before its reader has begun, which then switches the echo off")
		returned <- context.Canceled
	case <-time.After(beginning / 20):
	}
	close(begin)
	if err := <-returned; !errors.Is(err, context.Canceled) {
		t.Errorf("called off: %v", err)
	}
	if after, err := term.GetState(int(terminal.Fd())); err != nil || *after != *before {
		t.Errorf("the terminal is left otherwise than it was: %+v, %v; it was %+v", after, err, before)
	}
	must.Get(person.WriteString("\n"))(t)
	<-read
}
