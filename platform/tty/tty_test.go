//go:build linux || darwin

package tty_test

import (
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/creack/pty"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/tty"
)

// open returns a terminal and its other side.
func open(t *testing.T) (person, terminal *os.File) {
	t.Helper()
	person, terminal, err := pty.Open()
	if errors.Is(err, pty.ErrUnsupported) {
		t.Skip(err)
	}
	must.Do(t, err)
	t.Cleanup(func() { person.Close(); terminal.Close() })
	return person, terminal
}

// echoes types text and returns the immediate echo.
func echoes(t *testing.T, person *os.File, text string) string {
	t.Helper()
	must.Get(person.WriteString(text))(t)
	back := make(chan string, 1)
	go func() {
		buf := make([]byte, 100)
		n, _ := person.Read(buf)
		back <- string(buf[:n])
	}()
	select {
	case s := <-back:
		return s
	case <-time.After(testkit.Patience):
		t.Fatal("nothing came back")
		return ""
	}
}

func TestSize(t *testing.T) {
	_, terminal := open(t)
	if !tty.Is(terminal) {
		t.Error("a terminal is not taken for one")
	}
	if _, _, ok := tty.Size(terminal); ok {
		t.Error("a terminal without a size has one")
	}
	must.Do(t, pty.Setsize(terminal, &pty.Winsize{Rows: 30, Cols: 100}))
	if cols, rows, ok := tty.Size(terminal); !ok || cols != 100 || rows != 30 {
		t.Errorf("size %dx%d, %t; want 100x30", cols, rows, ok)
	}
	null := must.Get(os.Open(os.DevNull))(t)
	defer null.Close()
	if _, _, ok := tty.Size(null); ok || tty.Is(null) {
		t.Error("no terminal is taken for one")
	}
	if _, err := tty.Raw(null); err == nil {
		t.Error("no terminal has a raw mode")
	}
	if _, err := tty.ReadSecret(t.Context(), null); err == nil {
		t.Error("no terminal was read from")
	}
}

func TestRaw(t *testing.T) {
	person, terminal := open(t)
	if got := echoes(t, person, "a"); got != "a" {
		t.Fatalf("at first %q came back", got)
	}
	restore := must.Get(tty.Raw(terminal))(t)
	must.Get(person.WriteString("b\x03\r"))(t)
	buf := make([]byte, 4)
	if n, err := io.ReadAtLeast(terminal, buf, 4); err != nil || string(buf[:n]) != "ab\x03\r" {
		t.Errorf("read %q, %v; want every key as it is", buf[:n], err)
	}
	restore()
	restore()
	if got := echoes(t, person, "c"); got != "c" {
		t.Errorf("afterwards %q came back, want c alone: in raw mode nothing does", got)
	}
}

// The end of ctx is tested with the command, which then ends.
func TestReadSecret(t *testing.T) {
	person, terminal := open(t)
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := tty.ReadSecret(t.Context(), terminal)
		done <- result{text, err}
	}()
	must.Get(person.WriteString("hidden\n"))(t)
	if r := <-done; r.err != nil || r.text != "hidden" {
		t.Errorf("read %q, %v", r.text, r.err)
	}
}

func TestResized(t *testing.T) {
	changes, stop := tty.Resized()
	if changes == nil {
		t.Skip("not told on this system")
	}
	stop()
	select {
	case <-changes:
		t.Error("a change without a change")
	default:
	}
}
