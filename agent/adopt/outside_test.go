package adopt_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/agent/adopt"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
	"tether/platform/proc"
	"tether/platform/pty"
	"tether/screen"
)

// server is a tmux that belongs to the test.
type server struct {
	t      testing.TB
	socket string
	dir    string // of the test
}

// startTmux starts a server with one session of 80 by 24 cells, in whose first pane the
// shell command runs.
func startServer(t testing.TB, command string, options ...string) *server {
	t.Helper()
	testkit.Unix(t, testkit.Programs)
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("there is no tmux here")
	}
	dir := must.Get(testkit.MakeHome())(t)
	s := &server{t: t, socket: filepath.Join(dir, fmt.Sprintf("tmux-%d", os.Getuid()), "default"), dir: dir}
	must.Do(t, os.Mkdir(filepath.Dir(s.socket), 0o700))
	t.Cleanup(func() {
		_ = s.command("kill-server").Run()
		must.Do(t, testkit.RemoveHome(dir))
	})
	s.tmux(append([]string{"-f", "/dev/null", "set-option", "-g", "status", "off", ";", "new-session", "-d", "-s", "main", "-x", "80", "-y", "24"}, append(options, command)...)...)
	return s
}

func (s *server) command(args ...string) *exec.Cmd {
	c := exec.Command("tmux", append([]string{"-u", "-S", s.socket}, args...)...)
	c.Env = append(os.Environ(), "TERM=xterm-256color", "TMUX=", testkit.ForHang())
	return c
}

// tmux runs a command of tmux, and returns what it prints.
func (s *server) tmux(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// ask returns the value of a format.
func (s *server) ask(pane, format string) string {
	s.t.Helper()
	return s.tmux("display-message", "-p", "-t", pane, format)
}

// file returns the path of a file in the test's directory.
func (s *server) file(name string) string { return filepath.Join(s.dir, name) }

// attach attaches an ordinary client on a terminal of 80 by 24 cells.
func (s *server) attach(args ...string) *terminal {
	c := s.command(append([]string{"attach-session"}, args...)...)
	return startTerminal(s.t, pty.Command{Path: c.Path, Args: c.Args, Env: c.Env, Size: pty.Size{Cols: 80, Rows: 24}})
}

// options are those with which the server is the person's usual one.
func (s *server) options() adopt.Options {
	return adopt.Options{Getenv: func(name string) string {
		if name == "TMUX_TMPDIR" {
			return s.dir
		}
		return os.Getenv(name)
	}}
}

func (s *server) find(pane string) adopt.Pane {
	s.t.Helper()
	return must.Get(adopt.Find(context.Background(), s.options(), adopt.Target{Program: "tmux", Pane: pane}))(s.t)
}

// adopt starts a reader for the pane.
func (s *server) adopt(pane string) *terminal {
	s.t.Helper()
	return startReader(s.t, s.find(pane), false)
}

// hubDir is where the readers of a pane's server find their hub: beside the server, which
// the test removes.
func hubDir(t testing.TB, p adopt.Pane) string {
	dir := filepath.Join(filepath.Dir(filepath.Dir(p.Socket)), "hub")
	must.Do(t, os.MkdirAll(dir, 0o700))
	return dir
}

const nonce = "5ca1ab1e"

func startReader(t testing.TB, p adopt.Pane, typed bool) *terminal {
	t.Helper()
	self := must.Get(os.Executable())(t)
	return startTerminal(t, pty.Command{
		Path: self, Args: append([]string{self, verb, hubDir(t, p)}, adopt.ReaderArgs(p, typed)...),
		Env: append(adopt.ReaderEnv(os.Getenv, nonce), "GORACE=atexit_sleep_ms=0"), Size: p.Size,
	})
}

// terminal is a program on a terminal, whose output is kept.
type terminal struct {
	t   testing.TB
	pty *pty.PTY
	end chan struct{} // closed after the last output

	mu     sync.Mutex
	out    []byte
	frozen bool
	thaw   sync.Cond // of mu
}

func startTerminal(t testing.TB, c pty.Command) *terminal {
	t.Helper()
	r := &terminal{t: t, pty: must.Get(pty.Start(c))(t), end: make(chan struct{})}
	r.thaw.L = &r.mu
	go r.read()
	t.Cleanup(r.kill)
	return r
}

func (r *terminal) read() {
	defer close(r.end)
	buf := make([]byte, 64<<10)
	for {
		r.mu.Lock()
		for r.frozen {
			r.thaw.Wait()
		}
		r.mu.Unlock()
		n, err := r.pty.Read(buf)
		r.mu.Lock()
		r.out = append(r.out, buf[:n]...)
		r.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// freeze stops reading what the program prints, as a daemon does that stands still.
func (r *terminal) freeze(yes bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frozen = yes
	r.thaw.Broadcast()
}

func (r *terminal) kill() {
	r.freeze(false)
	_ = r.pty.Kill(context.Background(), 0)
	r.pty.Wait()
	<-r.end
	r.pty.Close()
}

func (r *terminal) output() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.out)
}

// last returns the last n bytes of the output.
func (r *terminal) last(n int) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Clone(r.out[max(0, len(r.out)-n):])
}

func (r *terminal) length() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.out)
}

// await waits until the program has printed text, after the first from bytes.
func (r *terminal) await(from int, text string) {
	r.t.Helper()
	testkit.Eventually(r.t, testkit.Patience, fmt.Sprintf("%q is printed", text), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return bytes.Contains(r.out[min(from, len(r.out)):], []byte(text))
	})
}

// awaitEnd waits until the program has ended, and returns its status.
func (r *terminal) awaitEnd() int {
	r.t.Helper()
	<-r.end
	return r.pty.Wait().Code
}

var sizeMark = regexp.MustCompile("\x1b\\]633;P;Size=([0-9]+)x([0-9]+);" + nonce + "(?:\x07|\x1b\\\\)")

const gapMark = "\x1b]633;P;Gap=unknown;" + nonce

// screen returns what the reader's output shows.
func (r *terminal) screen() *screen.Screen {
	out, s := r.output(), screen.New(80, 24)
	for {
		at := sizeMark.FindSubmatchIndex(out)
		if at == nil {
			s.Write(out)
			return s
		}
		s.Write(out[:at[0]])
		cols, _ := strconv.Atoi(string(out[at[2]:at[3]]))
		rows, _ := strconv.Atoi(string(out[at[4]:at[5]]))
		s.Resize(cols, rows)
		out = out[at[1]:]
	}
}

// same waits until the reader shows what tmux shows of the pane.
func (s *server) same(r *terminal, pane, after string) {
	s.t.Helper()
	var got, want string
	for end := time.Now().Add(testkit.Patience); ; <-time.After(20 * time.Millisecond) {
		var rows []string
		for row := range strings.SplitSeq(s.tmux("capture-pane", "-p", "-t", pane), "\n") {
			rows = append(rows, strings.TrimRight(untabbed(row), " "))
		}
		shown := r.screen()
		x, y := shown.Cursor()
		cols, lines := shown.Size()
		cursor := min(must.Get(strconv.Atoi(s.ask(pane, "#{cursor_x}")))(s.t), cols-1) // tmux tells the column after the last one
		want = fmt.Sprintf("%s\n%s", strings.TrimRight(strings.Join(rows, "\n"), "\n"), s.ask(pane, fmt.Sprintf("cursor %d,#{cursor_y} of #{pane_width}x#{pane_height} alternate #{alternate_on}", cursor)))
		alternate := 0
		if shown.WholeScreen() {
			alternate = 1
		}
		got = fmt.Sprintf("%s\ncursor %d,%d of %dx%d alternate %d", shown.Text(), x, y, cols, lines, alternate)
		if got == want {
			return
		}
		if time.Now().After(end) {
			s.t.Fatalf("after %s the reader shows\n%s\nand tmux\n%s", after, got, want)
		}
	}
}

func count(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// pid returns the reader's process.
func (r *terminal) pid() int { return r.pty.Pid() }

// hub returns the process that reads the server's panes, and the clients of tmux that it
// has started.
func (s *server) hub() []int {
	s.t.Helper()
	locks := must.Get(filepath.Glob(filepath.Join(s.dir, "hub", "*.sock.lock")))(s.t)
	if len(locks) != 1 {
		s.t.Fatalf("the locks of hubs are %q", locks)
	}
	pids := []int{ipc.Holder(locks[0])}
	for _, p := range proc.Descendants(must.Get(proc.List())(s.t), pids[0]) {
		if p.Pid != pids[0] {
			pids = append(pids, p.Pid)
		}
	}
	return pids
}

// untabbed returns a row with blanks for tabs, which tmux tells since 3.6.
func untabbed(row string) string {
	s := screen.NewState(1000, 1)
	s.Write([]byte(row))
	return s.Text()
}

// signal sends a signal to processes.
func signal(t testing.TB, name string, pids ...int) {
	t.Helper()
	args := []string{"-" + name}
	for _, pid := range pids {
		args = append(args, strconv.Itoa(pid))
	}
	if out, err := exec.Command("kill", args...).CombinedOutput(); err != nil {
		t.Fatalf("kill %q: %v: %s", args, err, out)
	}
}
