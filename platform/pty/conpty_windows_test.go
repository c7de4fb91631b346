package pty_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
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

// The tail is lost if a console is closed too early: a program prints and ends at once,
// and the reader is slow.
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
	must.Get(p.Write([]byte("hällo €\r")))(t)
	p.until("got hällo €.")
}

func TestResize(t *testing.T) {
	testkit.Leaks(t)
	p := start(t, "hang")
	p.until("ready")
	err := p.Resize(pty.Size{Cols: 132, Rows: 50})
	notOnWine(t, err)
	must.Do(t, err)
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
		p.tree(4)
		must.Do(t, p.Kill(t.Context(), grace))
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
	must.Do(t, p.Signal("sigkill"))
	if got := p.wantEnd(); got != killed {
		t.Errorf("exit %+v, want %+v", got, killed)
	}
	if err := p.Signal("KILL"); !errors.Is(err, pty.ErrExited) {
		t.Errorf("Signal after the end: %v, want ErrExited", err)
	}
}

// A byte read ahead by WaitReadable must not change the stream, in any mixture of the two
// calls and with any size of buffer.
func TestWaitReadableKeepsTheStream(t *testing.T) {
	testkit.Leaks(t)
	const lines = 500
	var want strings.Builder
	for i := range lines {
		fmt.Fprintf(&want, "line %d.\n", i)
	}
	for _, size := range []int{1, 2, 7, 4096, 65536} {
		p := start(t, "lines", strconv.Itoa(lines))
		var got []byte
		b := make([]byte, size)
		var err error
		for i := 0; err == nil; i++ {
			if i%3 != 0 {
				if err := p.WaitReadable(); err != nil && err != io.EOF {
					t.Fatal(err)
				}
			}
			var n int
			n, err = p.Read(b)
			got = append(got, b[:n]...)
		}
		if err != io.EOF || text(got) != want.String() {
			t.Errorf("buffer of %d: %v after %d bytes, or other ones than printed", size, err, len(got))
		}
		if err := p.WaitReadable(); err != io.EOF {
			t.Errorf("WaitReadable at the end: %v", err)
		}
	}
}

func TestCloseWakes(t *testing.T) {
	testkit.Leaks(t)
	for name, wait := range map[string]func(p *term) error{
		"Read":         func(p *term) error { _, err := p.Read(make([]byte, 10)); return err },
		"WaitReadable": func(p *term) error { return p.WaitReadable() },
		"Write": func(p *term) error {
			for line := []byte(strings.Repeat("x", 4096)); ; {
				if _, err := p.Write(line); err != nil {
					return err
				}
			}
		},
	} {
		p := start(t, "hang")
		p.until("ready")
		waiting, result := make(chan struct{}), make(chan error, 1)
		go func() {
			close(waiting)
			err := wait(p)
			for err == nil { // output that the console had still painted
				err = wait(p)
			}
			result <- err
		}()
		<-waiting
		for range 2 { // the second time does nothing
			if err := p.Close(); err != nil {
				t.Errorf("%s: Close: %v", name, err)
			}
		}
		select {
		case err := <-result:
			if !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s, closed: %v, want os.ErrClosed", name, err)
			}
		case <-time.After(patience):
			t.Fatalf("%s was not woken by Close", name)
		}
		if err := p.Resize(pty.Size{Cols: 80, Rows: 24}); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Resize after Close: %v, want os.ErrClosed", err)
		}
		if _, err := p.Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
			t.Errorf("Write after Close: %v, want os.ErrClosed", err)
		}
	}
}

// Kill after Close also finds the processes that the terminal's program left behind.
func TestKillAfterClose(t *testing.T) {
	testkit.Leaks(t)
	p := start(t, "tree", "1")
	p.until("pid ")
	p.Close()
	check.OK(t, p.Kill(t.Context(), 0))
	p.wantEnd()
}

// Ctrl+C reaches the program, which this one has not made deaf for it.
func TestInterrupt(t *testing.T) {
	testkit.NotOnWine(t, "its console host ends when Ctrl+C is typed")
	testkit.Leaks(t)
	for _, press := range []func(p *term) error{
		func(p *term) error { return p.Signal("INT") },
		func(p *term) error { _, err := p.Write([]byte("\x03")); return err },
	} {
		p := start(t, "interrupt")
		p.until("ready")
		must.Do(t, press(p))
		p.until("interrupted")
		if got := p.wantEnd(); got != (pty.Exit{Code: 42}) {
			t.Errorf("exit %+v, want the program's own 42", got)
		}
		p.rest()
	}
}

// The console's escape sequences of programs arrive unchanged and in order, however they
// end.
func TestSequencesArrive(t *testing.T) {
	testkit.Leaks(t)
	sequencesArrive(t, "\x1b\\")
}

func TestSequencesEndedByABellArrive(t *testing.T) {
	testkit.NotOnWine(t, "it drops BEL")
	testkit.Leaks(t)
	sequencesArrive(t, "\a")
}

func sequencesArrive(t *testing.T, end string) {
	t.Helper()
	pieces := []string{"\x1b]633;A" + end, "one", "\x1b]133;C" + end, "two", "\x1b]0;title" + end, "three", "\x1b]633;D;7" + end}
	c := helper("print")
	c.Env = append(c.Env, "TEXT="+strings.Join(pieces, ""))
	p := run(t, c)
	got := must.Get(io.ReadAll(p))(t)
	at := -1
	for _, want := range pieces {
		next := strings.Index(string(got), want)
		if next <= at {
			t.Fatalf("%q is missing or too early in %q", want, got)
		}
		at = next
	}
}

func TestManyAtOnce(t *testing.T) {
	testkit.Leaks(t)
	const together = 20
	var all sync.WaitGroup
	for i := range together {
		all.Go(func() {
			p, err := pty.Start(helper("code", strconv.Itoa(i)))
			if err != nil {
				t.Error(err)
				return
			}
			defer p.Close()
			if _, err := io.Copy(io.Discard, p); err != nil {
				t.Error(err)
			}
			if got := p.Wait(); got.Code != i {
				t.Errorf("program %d: exit %+v", i, got)
			}
		})
	}
	all.Wait()
}

// Sizes that Windows cannot do with become the nearest.
func TestSizesOfAConsole(t *testing.T) {
	for _, c := range []struct{ given, want pty.Size }{
		{pty.Size{Cols: 80, Rows: 24}, pty.Size{Cols: 80, Rows: 24}},
		{pty.Size{Cols: 1, Rows: 1}, pty.Size{Cols: 2, Rows: 1}},
		{pty.Size{Cols: 65535, Rows: 40000}, pty.Size{Cols: 1000, Rows: 1000}},
	} {
		if got := pty.ConsoleSize(c.given); got != c.want {
			t.Errorf("%v becomes %v, want %v", c.given, got, c.want)
		}
	}
}
