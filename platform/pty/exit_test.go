//go:build linux || darwin

package pty_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// The end of output and the end of the program are two events, in either order.

func TestClosesOutputButLives(t *testing.T) {
	testkit.Leaks(t)
	p := startHelper(t, "close")
	if got := p.rest(); got != "" {
		t.Errorf("output %q", got)
	}
	select {
	case <-p.Exited():
		t.Errorf("ended with %+v, but only its output did", p.Wait())
	default:
	}
	check.OK(t, p.Kill(t.Context(), patience))
	if got := p.Wait(); got.Signal != "SIGTERM" && got.Signal != "SIGHUP" {
		t.Errorf("exit %+v, want that of a polite signal", got)
	}
}

func TestDiesAtOnceWithOutputPending(t *testing.T) {
	testkit.Leaks(t)
	want := strings.Repeat("0123456789", 200)
	for range 20 {
		p := start(t, nil, "sh", "-c", "printf %s "+want)
		p.Wait()
		if got := p.rest(); got != want {
			t.Fatalf("%d bytes of output were left, want %d", len(got), len(want))
		}
	}
}

func TestBackgroundKeepsTheTerminal(t *testing.T) {
	testkit.Leaks(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	must.Do(t, unix.Mkfifo(fifo, 0o600))
	p := start(t, []string{"FIFO=" + fifo}, "sh", "-c", `trap "" HUP; (read x <"$FIFO"; echo "late $x") & exit 7`)
	if got := p.Wait(); got.Code != 7 {
		t.Errorf("exit %+v, want 7", got)
	}
	must.Do(t, os.WriteFile(fifo, []byte("news\n"), 0))
	if got := p.rest(); got != "late news\r\n" {
		t.Errorf("output after the program's end: %q", got)
	}
}

func TestSignal(t *testing.T) {
	testkit.Leaks(t)
	for name, want := range map[string]string{"INT": "SIGINT", "sigterm": "SIGTERM", "SIGKILL": "SIGKILL", pty.HangUp: "SIGHUP"} {
		p := startHelper(t, "hang")
		p.until("ready")
		if err := p.Signal(name); err != nil {
			t.Fatalf("Signal(%q): %v", name, err)
		}
		if got := p.Wait(); got.Signal != want {
			t.Errorf("Signal(%q): exit %+v, want %s", name, got, want)
		}
		if err := p.Signal(name); !errors.Is(err, pty.ErrExited) {
			t.Errorf("Signal after the end: %v, want ErrExited", err)
		}
	}
}

func TestSignalGoesToTheForeground(t *testing.T) {
	testkit.Leaks(t)
	p := startHelper(t, "front")
	p.until("ready")
	must.Do(t, p.Signal("INT"))
	p.until("job: signal: interrupt")
	for _, name := range []string{"", "SIG", "NOSUCH", "9"} {
		if err := p.Signal(name); err == nil || errors.Is(err, pty.ErrExited) {
			t.Errorf("Signal(%q) = %v, want an error about the name", name, err)
		}
	}
}

// Many at once: each gets its own exit although they share one SIGCHLD.
func TestManyExits(t *testing.T) {
	testkit.Leaks(t)
	var all []*term
	for i := range 40 {
		all = append(all, start(t, nil, "sh", "-c", "exit "+strconv.Itoa(i)))
	}
	for i, p := range all {
		select {
		case <-p.Exited():
		case <-time.After(patience):
			t.Fatalf("the end of program %d was not noticed", i)
		}
		if got := p.Wait(); got.Code != i {
			t.Errorf("program %d: exit %+v", i, got)
		}
		if _, err := io.Copy(io.Discard, p); err != nil {
			t.Error(err)
		}
	}
}
