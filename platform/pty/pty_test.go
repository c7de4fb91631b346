//go:build linux || darwin

package pty_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/proc"
	"tether/platform/pty"
)

const patience = testkit.Patience

func TestOutputInputAndExit(t *testing.T) {
	testkit.Leaks(t)
	p := start(t, []string{"WHO=bär"}, "sh", "-c", `stty size; read x; echo "$WHO $x"; exit 3`)
	if got := p.until("\n"); got != "24 80\r\n" {
		t.Errorf("default size: %q", got)
	}
	if n, err := p.Write([]byte("über\n")); n != 6 || err != nil {
		t.Errorf("Write = %d, %v", n, err)
	}
	if got, want := p.rest(), "über\r\nbär über\r\n"; got != want {
		t.Errorf("output %q, want %q", got, want)
	}
	if got := p.Wait(); got != (pty.Exit{Code: 3}) {
		t.Errorf("exit %+v, want code 3", got)
	}
	if n, err := p.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("Read after the end = %d, %v; want EOF again", n, err)
	}
	if err := p.WaitReadable(); err != io.EOF {
		t.Errorf("WaitReadable after the end = %v, want EOF", err)
	}
}

func TestExit(t *testing.T) {
	for _, c := range []struct {
		script string
		want   pty.Exit
	}{
		{"exit 0", pty.Exit{}},
		{"exit 255", pty.Exit{Code: 255}},
		{"kill -9 $$", pty.Exit{Code: 137, Signal: "SIGKILL"}},
		{"kill -TERM $$", pty.Exit{Code: 143, Signal: "SIGTERM"}},
		{"kill -SEGV $$", pty.Exit{Code: 139, Signal: "SIGSEGV"}},
	} {
		p := start(t, nil, "sh", "-c", c.script)
		var wg sync.WaitGroup
		for range 3 { // several may wait
			wg.Go(func() {
				check.Equal(t, fmt.Sprintf("%s:", c.script), c.want, p.Wait())
			})
		}
		wg.Wait()
	}
}

func TestStartReportsFaults(t *testing.T) {
	testkit.Leaks(t)
	dir := t.TempDir()
	write := func(name, text string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(text), mode))
		return path
	}
	plain := write("plain", "x", 0o644)
	garbage := write("garbage", "\x7fELF and no more", 0o755)
	orphan := write("orphan", "#!/no/such/interpreter\n", 0o755)
	path := "PATH=" + dir
	for _, c := range []struct {
		name    string
		command pty.Command
		what    string
		is      error  // nil: any
		says    string // part of the message
	}{
		{"no program", pty.Command{}, "program", nil, "no program given"},
		{"missing", pty.Command{Path: "/no/such"}, "program", fs.ErrNotExist, `program "/no/such"`},
		{"not on PATH", pty.Command{Path: "nosuch", Env: []string{path}}, "program", fs.ErrNotExist, `program "nosuch"`},
		{"no PATH", pty.Command{Path: "sh"}, "program", fs.ErrNotExist, `program "sh"`},
		{"relative PATH", pty.Command{Path: "sh", Env: []string{"PATH=:.:bin"}}, "program", fs.ErrNotExist, `program "sh"`},
		{"not executable", pty.Command{Path: plain}, "program", fs.ErrPermission, plain},
		{"not executable on PATH", pty.Command{Path: "plain", Env: []string{path}}, "program", fs.ErrPermission, `"plain"`},
		{"a directory", pty.Command{Path: dir}, "program", nil, "is a directory"},
		{"not a program", pty.Command{Path: garbage}, "program", nil, "exec format error"},
		{"no interpreter", pty.Command{Path: orphan}, "program", nil, "interpreter"},
		{"NUL", pty.Command{Path: "/bin/sh", Args: []string{"a\x00b"}}, "program", nil, "invalid argument"},
		{"missing directory", pty.Command{Path: "/bin/sh", Dir: "/no/such"}, "directory", fs.ErrNotExist, `directory "/no/such"`},
		{"large variable", pty.Command{Path: "/bin/sh", Env: []string{"A=1", "BIG=" + strings.Repeat("s", 3<<20)}}, "program", pty.ErrTooLarge, "the largest variables are BIG (3145732), A (3)"},
		{"not a directory", pty.Command{Path: "/bin/sh", Dir: plain}, "directory", nil, "not a directory"},
	} {
		limited := c.command
		limited.Limits = proc.Limits{Umask: new(0o777)}
		for _, command := range []pty.Command{c.command, limited} {
			p, err := pty.Start(command)
			if err == nil {
				t.Errorf("%s: started", c.name)
				p.Close()
				continue
			}
			var se *pty.StartError
			if !errors.As(err, &se) || se.What != c.what || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %v (%#v); want %s, %v, with %q", c.name, err, err, c.what, c.is, c.says)
			}
		}
	}
}

func TestDirAndRelativeProgram(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "here"), []byte("#!/bin/sh\npwd -P\n"), 0o755))
	p := must.Get(pty.Start(pty.Command{Path: "./here", Dir: dir, Size: pty.Size{Cols: 300, Rows: 10}}))(t)
	defer p.Close()
	got, err := io.ReadAll(p)
	want, _ := filepath.EvalSymlinks(dir)
	if err != nil || string(got) != want+"\r\n" {
		t.Errorf("ran in %q, %v; want %q", got, err, want)
	}
	p.Wait()
}

func TestEnvironmentIsOnlyTheGivenOne(t *testing.T) {
	for _, env := range [][]string{nil, {}, {"A=1"}} {
		p := must.Get(pty.Start(pty.Command{Path: "/usr/bin/env", Env: env}))(t)
		defer p.Close()
		got, err := io.ReadAll(p)
		if want := strings.Join(env, "\r\n"); err != nil || strings.TrimSpace(string(got)) != want {
			t.Errorf("environment %q became %q, %v", env, got, err)
		}
		p.Wait()
	}
}

func TestResize(t *testing.T) {
	testkit.Leaks(t)
	p := startHelper(t, "size")
	p.until("80x24\r\n")
	for _, s := range []pty.Size{{Cols: 1, Rows: 1}, {Cols: 65535, Rows: 65535}, {Cols: 132, Rows: 50}} {
		if err := p.Resize(s); err != nil {
			t.Fatalf("Resize(%v): %v", s, err)
		}
	}
	p.until("132x50\r\n")
	for _, s := range []pty.Size{{}, {Cols: 80}, {Rows: 24}} {
		if err := p.Resize(s); err == nil {
			t.Errorf("Resize(%v) was accepted", s)
		}
	}
	p.Close()
	if err := p.Resize(pty.Size{Cols: 80, Rows: 24}); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Resize after Close: %v, want os.ErrClosed", err)
	}
}

// Reading ahead by WaitReadable must not change the stream, in any mixture of the two
// calls and with any size of buffer.
func TestWaitReadableKeepsTheStream(t *testing.T) {
	const lines = 3000
	for _, size := range []int{1, 2, 7, 4096, 65536} {
		p := start(t, nil, "sh", "-c", fmt.Sprintf("i=0; while [ $i -lt %d ]; do echo line $i; i=$((i+1)); done", lines))
		var got bytes.Buffer
		b := make([]byte, size)
		for i := 0; ; i++ {
			if i%3 != 0 {
				if err := p.WaitReadable(); err != nil && err != io.EOF {
					t.Fatal(err)
				}
			}
			n, err := p.Read(b)
			got.Write(b[:n])
			if err == io.EOF {
				break
			}
			must.Do(t, err)
		}
		var want bytes.Buffer
		for i := range lines {
			want.WriteString("line " + strconv.Itoa(i) + "\r\n")
		}
		if !bytes.Equal(got.Bytes(), want.Bytes()) {
			t.Errorf("buffer of %d: %d bytes, want %d, or other ones", size, got.Len(), want.Len())
		}
	}
}

func TestReadsAllocateNothing(t *testing.T) {
	p := start(t, nil, "sh", "-c", "while :; do echo y; done")
	b := make([]byte, 4096)
	allocs := testing.AllocsPerRun(200, func() {
		must.Do(t, p.WaitReadable())
		must.Get(p.Read(b))(t)
	})
	if allocs > 0 {
		t.Errorf("%v allocations per read, want none", allocs)
	}
}

// Close must wake waiting calls: a blocking descriptor would not.
func TestCloseWakes(t *testing.T) {
	testkit.Leaks(t)
	for name, wait := range map[string]func(p *term) error{
		"Read":         func(p *term) error { _, err := p.Read(make([]byte, 10)); return err },
		"WaitReadable": func(p *term) error { return p.WaitReadable() },
		"Write": func(p *term) error {
			for line := []byte("x\n"); ; {
				if _, err := p.Write(line); err != nil {
					return err
				}
			}
		},
	} {
		p := start(t, nil, "sh", "-c", "stty -echo; echo ready; exec sleep 1000")
		p.until("ready\r\n")
		waiting, result := make(chan struct{}), make(chan error, 1)
		go func() { close(waiting); result <- wait(p) }()
		<-waiting
		if err := p.Close(); err != nil {
			t.Errorf("%s: Close: %v", name, err)
		}
		select {
		case err := <-result:
			if !errors.Is(err, os.ErrClosed) {
				t.Errorf("%s, closed: %v, want os.ErrClosed", name, err)
			}
		case <-time.After(patience):
			t.Fatalf("%s was not woken by Close", name)
		}
		if err := p.Close(); err != nil {
			t.Errorf("%s: second Close: %v", name, err)
		}
	}
}

// Bytes read ahead are returned even if the terminal was closed since.
func TestCloseAfterWaitReadable(t *testing.T) {
	p := start(t, nil, "sh", "-c", "echo abc; exec sleep 1000")
	must.Do(t, p.WaitReadable())
	p.Close()
	var got []byte
	b := make([]byte, 1) // smaller than the bytes read ahead
	n, err := p.Read(b)
	for ; err == nil; n, err = p.Read(b) {
		got = append(got, b[:n]...)
	}
	if !errors.Is(err, os.ErrClosed) {
		t.Errorf("in the end %v, want os.ErrClosed", err)
	}
	if len(got) == 0 || !strings.HasPrefix("abc\r\n", string(got)) {
		t.Errorf("read %q; want what was announced", got)
	}
}

// Another user must not read or write a terminal's device: its mode is the system's, with
// nothing added.
func TestDeviceIsTheUsersAlone(t *testing.T) {
	testkit.Leaks(t)
	p := start(t, nil, "sh", "-c", `tty; read x`)
	var device string
	must.Get(fmt.Sscan(p.until("\r\n"), &device))(t)
	for _, when := range []string{"at the start", "after a resize"} {
		info := must.Get(os.Stat(device))(t)
		if mode := info.Mode().Perm(); mode&^0o620 != 0 { // the group tty may write(1), as to any terminal
			t.Errorf("%s %s has the mode %o, want at most 620", when, device, mode)
		}
		must.Do(t, p.Resize(pty.Size{Cols: 90, Rows: 20}))
	}
	p.kill(0)
}
