package pty_test

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tether/internal/testkit"
	"tether/platform/pty"
)

// errNotImplemented is E_NOTIMPL, which Wine 10 returns for ResizePseudoConsole.
var errNotImplemented = syscall.Errno(0x80004001)

func TestOutputAndExit(t *testing.T) {
	testkit.Leaks(t)
	for _, code := range []uint32{0, 1, 255, 256, 0x7fffffff, 0x80000000, 0xc0000005, 0xffffffff} {
		p := start(t, "code", strconv.FormatUint(uint64(code), 10))
		if got := p.wantEnd(); got != (pty.Exit{Code: int(code)}) {
			t.Errorf("exit %+v, want %d", got, code)
		}
		p.rest()
	}
}

// The tail is what is lost when a console is closed too early: a program prints and ends at once, and who reads is slow.
func TestTailIsNeverLost(t *testing.T) {
	testkit.Leaks(t)
	const lines, rounds, together = 500, 200, 8
	slots := make(chan struct{}, together)
	var lost atomic.Int64
	var all sync.WaitGroup
	for range rounds {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			p, err := pty.Start(helper("lines", strconv.Itoa(lines)))
			if err != nil {
				t.Error(err)
				return
			}
			defer p.Close()
			var got []byte
			for b := make([]byte, 512); err == nil; <-time.After(time.Millisecond) {
				var n int
				n, err = p.Read(b)
				got = append(got, b[:n]...)
			}
			if !strings.Contains(text(got), fmt.Sprintf("line %d.", lines-1)) || err != io.EOF {
				lost.Add(1)
				t.Logf("%v after %q", err, got[max(0, len(got)-100):])
			}
			p.Wait()
		})
	}
	all.Wait()
	if n := lost.Load(); n > 0 {
		t.Errorf("the last line was lost %d times of %d", n, rounds)
	}
}

func TestInput(t *testing.T) {
	testkit.Leaks(t)
	p := start(t, "echo")
	p.until("ready")
	if _, err := p.Write([]byte("hällo €\r")); err != nil {
		t.Fatal(err)
	}
	p.until("got hällo €.")
}

func TestResize(t *testing.T) {
	testkit.Leaks(t)
	p := start(t, "hang")
	p.until("ready")
	err := p.Resize(pty.Size{Cols: 132, Rows: 50})
	notOnWine(t, err)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []pty.Size{{}, {Cols: 80}, {Rows: 24}} {
		if err := p.Resize(s); err == nil {
			t.Errorf("Resize(%v) was accepted", s)
		}
	}
}

// killed is how a program ends that was not asked to.
var killed = pty.Exit{Code: 137, Signal: "SIGKILL"}

func TestKillTakesTheWholeTree(t *testing.T) {
	testkit.Leaks(t)
	for _, grace := range []time.Duration{0, 200 * time.Millisecond} {
		p := start(t, "tree", "3")
		for range 4 {
			p.until("pid ")
		}
		if err := p.Kill(t.Context(), grace); err != nil {
			t.Fatal(err)
		}
		if got := p.wantEnd(); grace == 0 && got != killed {
			t.Errorf("exit %+v, want %+v", got, killed)
		}
		p.rest()
	}
}

func TestBackgroundKeepsTheConsole(t *testing.T) {
	testkit.Leaks(t)
	p := start(t, "leave")
	if got := p.wantEnd(); got.Code != 7 {
		t.Errorf("exit %+v, want 7", got)
	}
	if got := p.rest(); !strings.Contains(got, "late news") {
		t.Errorf("output after the program's end: %q", got)
	}
}

func TestSignal(t *testing.T) {
	testkit.Leaks(t)
	p := start(t, "hang")
	p.until("ready")
	for _, name := range []string{"", "USR1", "9"} {
		if err := p.Signal(name); err == nil || errors.Is(err, pty.ErrExited) {
			t.Errorf("Signal(%q) = %v, want an error about the name", name, err)
		}
	}
	if err := p.Signal("sigkill"); err != nil {
		t.Fatal(err)
	}
	if got := p.wantEnd(); got != killed {
		t.Errorf("exit %+v, want %+v", got, killed)
	}
	if err := p.Signal("KILL"); !errors.Is(err, pty.ErrExited) {
		t.Errorf("Signal after the end: %v, want ErrExited", err)
	}
}
