//go:build windows

package tty_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/pty"
	"tether/platform/tty"
)

// helperVar makes the test binary run as a program on a console instead of the tests:
// only a program on a console can use it.
const helperVar = "TTY_TEST_HELPER"

func TestMain(m *testing.M) {
	helper := map[string]func(){"size": size, "raw": raw, "secret": secret, "called off": calledOff}[os.Getenv(helperVar)]
	if helper != nil {
		helper()
		return
	}
	os.Exit(m.Run())
}

func size() {
	cols, rows, ok := tty.Size(os.Stdout)
	fmt.Printf("%t %t %dx%d %t.\n", tty.Is(os.Stdin), tty.Is(os.Stdout), cols, rows, ok)
	changes, stop := tty.Resized()
	fmt.Println("ready")
	select {
	case <-changes:
		cols, rows, _ := tty.Size(os.Stdout)
		fmt.Printf("now %dx%d.\n", cols, rows)
	case <-time.After(2 * time.Second):
		fmt.Println("no change.")
	}
	stop()
}

func raw() {
	restore, err := tty.Raw(os.Stdin)
	fmt.Printf("raw %v.\r\n", err)
	keys := tty.Keys(os.Stdin)
	buf := make([]byte, 100)
	var got []byte
	for !strings.Contains(string(got), "q") {
		n, err := keys.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			fmt.Printf("error %v.\r\n", err)
			break
		}
	}
	restore()
	restore()
	fmt.Printf("got %q.\n", got)
}

func secret() {
	fmt.Println("ready")
	text, err := tty.ReadSecret(context.Background(), os.Stdin)
	fmt.Printf("secret %q %v.\n", strings.ToUpper(text), err)
}

func calledOff() {
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := tty.ReadSecret(ctx, os.Stdin)
	fmt.Printf("called off: %v.\n", err)
	os.Exit(0) // a goroutine still reads
}

// on runs a helper on a console of its own.
func on(t *testing.T, helper string) *pty.PTY {
	t.Helper()
	testkit.Leaks(t)
	p := must.Get(pty.Start(pty.Command{Path: os.Args[0], Env: append(os.Environ(), helperVar+"="+helper), Size: pty.Size{Cols: 100, Rows: 30}}))(t)
	t.Cleanup(func() {
		check.OK(t, p.Kill(t.Context(), 0))
		p.Close()
	})
	return p
}

func until(t *testing.T, p *pty.PTY, want string) string {
	t.Helper()
	var got []byte
	for b := make([]byte, 4096); !strings.Contains(string(got), want); {
		n, err := p.Read(b)
		got = append(got, b[:n]...)
		if err != nil {
			t.Fatalf("%v while waiting for %q in %q", err, want, got)
		}
	}
	return string(got)
}

func TestSizeOfAConsole(t *testing.T) {
	p := on(t, "size")
	until(t, p, "true true 100x30 true.")
	until(t, p, "ready")
	until(t, p, "no change.")
}

func TestResizedConsole(t *testing.T) {
	testkit.NotOnWine(t, "it cannot resize a pseudo-console")
	p := on(t, "size")
	until(t, p, "ready")
	must.Do(t, p.Resize(pty.Size{Cols: 90, Rows: 20}))
	until(t, p, "now 90x20.")
}

// Every key arrives unchanged; Ctrl+Z, which ends reading through os.File, is a key.
func TestRawConsole(t *testing.T) {
	p := on(t, "raw")
	until(t, p, "raw <nil>.")
	must.Get(p.Write([]byte("a\x1aé€\rq")))(t)
	until(t, p, `got "a\x1aé€\rq".`)
}

func TestSecretOnAConsole(t *testing.T) {
	p := on(t, "secret")
	until(t, p, "ready")
	must.Get(p.Write([]byte("hidden\r")))(t)
	if got := until(t, p, `secret "HIDDEN" <nil>.`); strings.Contains(got, "hidden") {
		t.Errorf("what was typed is shown: %q", got)
	}
}

func TestSecretIsCalledOff(t *testing.T) {
	until(t, on(t, "called off"), "called off: context deadline exceeded.")
}

func TestNoConsole(t *testing.T) {
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
	if tty.Keys(null) != null {
		t.Error("what is no terminal is read in another way")
	}
}
