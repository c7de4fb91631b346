package shellint_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
	"tether/shellint"
)

// The tests in shells_*_test.go start the real shells on a pseudo-terminal and type as a
// person does: a line, then wait for the prompt. Files that the shell's commands wrote,
// and not only marks, show what it did. A shell that is not installed is skipped by name.
// Further versions of bash and zsh are tested if TETHER_TEST_SHELLS lists their paths,
// separated by ":".

// patience is how long a shell may take to answer on a machine that does other things
// too.
const patience = testkit.Patience

// anotherTry is how long a key that a program may have overlooked has no effect before it
// is typed again.
const anotherTry = time.Second

// ready is the prompt of all test shells, so that the end of a line is seen without marks
// too. No line that is typed has it.
const ready = "ready#> " // with the # that mksh wants of root

const testNonce = "n0nce-4-tests-0123456789"

// shell starts a session.
type shell struct {
	argv    []string
	files   map[string]string // start-up files, relative to HOME
	env     []string
	plain   bool   // no integration
	untold  bool   // the tracker is not told the typed bytes, its last resort for a line
	fifo    string // made in HOME
	answers bool   // the terminal says where the cursor is when it is asked
	opts    shellint.InjectOptions
}

// session is a shell on a terminal, with its output.
type session struct {
	t       testing.TB
	home    string
	dir     string // of the injection
	p       *pty.PTY
	done    chan struct{}
	untold  bool
	marked  bool // has integration
	answers bool

	mu      sync.Mutex
	changed *sync.Cond
	scanner *shellint.Scanner
	tracker shellint.Tracker
	raw     []byte
	clean   []byte // raw without marks
	cut     int64  // raw offset up to which clean goes
	marks   []shellint.Mark
	events  []shellint.CommandEvent
	ended   bool
}

// shellPath finds a shell or skips the test.
func shellPath(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is not installed", name)
	}
	return path
}

// versions are the installed shell of that name and those in TETHER_TEST_SHELLS.
func versions(t testing.TB, name string) []string {
	t.Helper()
	paths := []string{shellPath(t, name)}
	for _, path := range filepath.SplitList(os.Getenv("TETHER_TEST_SHELLS")) {
		if strings.HasPrefix(filepath.Base(path), name) {
			paths = append(paths, path)
		}
	}
	return paths
}

// startShell starts sh in a new home.
func startShell(t testing.TB, sh shell) *session {
	t.Helper()
	s := &session{t: t, home: t.TempDir(), dir: t.TempDir(), done: make(chan struct{})}
	return s.start(sh)
}

func (s *session) start(sh shell) *session {
	t := s.t
	t.Helper()
	s.changed, s.untold, s.answers = sync.NewCond(&s.mu), sh.untold, sh.answers
	if sh.fifo != "" {
		mkfifo(t, filepath.Join(s.home, sh.fifo))
	}
	s.scanner = shellint.NewScanner(shellint.Options{Nonce: testNonce})
	// Else fish makes completions of all manual pages, in the background.
	write(t, filepath.Join(s.home, ".local/share/fish/generated_completions/none.fish"), "")
	for name, text := range sh.files {
		write(t, filepath.Join(s.home, name), text)
	}
	env := append([]string{
		"HOME=" + s.home, "TERM=xterm-256color", "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "HISTFILE=" + filepath.Join(s.home, "history"),
		"LOG=" + filepath.Join(s.home, "log"), "SHELL=/bin/sh",
	}, sh.env...)
	argv := sh.argv
	if s.marked = !sh.plain; s.marked {
		argv, env = s.inject(sh, env)
	}
	var err error
	s.p, err = pty.Start(pty.Command{Path: sh.argv[0], Args: argv, Dir: s.home, Env: env, Size: pty.Size{Cols: 80, Rows: 24}})
	must.Do(t, err)
	go s.read()
	t.Cleanup(s.stop)
	return s
}

func (s *session) inject(sh shell, env []string) (argv, newEnv []string) {
	s.t.Helper()
	o := sh.opts
	o.Nonce, o.Dir = testNonce, s.dir
	o.Getenv = func(name string) string { return getenv(env, name) }
	plan := must.Get(shellint.Inject(sh.argv, o))(s.t)
	for _, f := range plan.Files {
		must.Do(s.t, os.WriteFile(filepath.Join(s.dir, f.Name), f.Content, os.FileMode(f.Mode)))
	}
	for name, value := range plan.Env {
		env = slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
		env = append(env, name+"="+value)
	}
	return plan.Argv, env
}

func getenv(env []string, name string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(env[i], name+"="); ok {
			return value
		}
	}
	return ""
}

// read takes the output until its end.
func (s *session) read() {
	defer close(s.done)
	var r shellint.Result
	buf := make([]byte, 32<<10)
	for {
		n, err := s.p.Read(buf)
		s.mu.Lock()
		if n > 0 {
			s.raw = append(s.raw, buf[:n]...)
			s.scanner.Scan(buf[:n], &r)
			s.take(&r)
			if s.answers && bytes.Contains(buf[:n], []byte("\x1b[6n")) {
				_, _ = s.p.Write([]byte("\x1b[1;1R"))
			}
		}
		if err != nil {
			s.scanner.Close(&r)
			s.take(&r)
			s.ended = true
		}
		s.changed.Broadcast()
		s.mu.Unlock()
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
				s.t.Errorf("read: %v", err)
			}
			return
		}
	}
}

// take keeps the contents of a Result. The caller holds mu.
func (s *session) take(r *shellint.Result) {
	for _, m := range r.Marks {
		if m.PS == 133 || m.PS == 633 {
			s.marks = append(s.marks, m.Clone())
		}
	}
	s.events = append(s.events, s.tracker.Feed(r)...)
	from := s.cut
	for _, span := range r.Spans {
		if span.Class != shellint.ClassMark {
			continue
		}
		if span.Start > from {
			s.clean = append(s.clean, s.raw[from:span.Start]...)
		}
		from = max(from, span.End)
	}
	if r.Decided > from {
		s.clean = append(s.clean, s.raw[from:r.Decided]...)
		from = r.Decided
	}
	s.cut = from
}

func (s *session) stop() {
	s.p.Kill(context.Background(), 0)
	s.p.Close()
	<-s.done
}

// wait blocks until cond, called with mu held, is true.
func (s *session) wait(what string, cond func() bool) {
	s.t.Helper()
	if !s.within(patience, cond) {
		raw, _ := s.written()
		s.t.Fatalf("no %s in\n%q", what, tail(raw))
	}
}

func tail(text string) string { return text[max(0, len(text)-1000):] }

// send types text.
func (s *session) send(text string) {
	s.t.Helper()
	s.mu.Lock()
	if !s.untold {
		s.tracker.Input([]byte(text))
	}
	s.mu.Unlock()
	if _, err := s.p.Write([]byte(text)); err != nil {
		s.t.Fatalf("type %q: %v", text, err)
	}
}

// offset is where clean output stands.
func (s *session) offset() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.clean)
}

// waitPrompt waits for a prompt after the clean offset.
func (s *session) waitPrompt(from int) { s.t.Helper(); s.waitText(from, ready) }

func (s *session) waitText(from int, text string) {
	s.t.Helper()
	s.wait(fmt.Sprintf("%q", text), func() bool { return bytes.Contains(s.clean[min(from, len(s.clean)):], []byte(text)) })
}

// typeLines types each line, Enter, and waits for the prompt; if the line is a command
// that is reported, for the prompt after its end.
func (s *session) typeLines(lines ...string) {
	s.t.Helper()
	for _, line := range lines {
		if !s.marked || line == "" || line[0] == '#' {
			s.typeUnreported(line)
			continue
		}
		s.mu.Lock()
		closed := s.closed()
		s.mu.Unlock()
		s.send(line + "\r")
		s.wait("end of "+line, func() bool {
			return s.closed() > closed && bytes.Contains(s.raw[s.events[len(s.events)-1].Off:], []byte(ready))
		})
	}
}

// typeUnreported types each line, Enter, and waits for the prompt.
func (s *session) typeUnreported(lines ...string) {
	s.t.Helper()
	for _, line := range lines {
		from := s.offset()
		s.send(line + "\r")
		s.waitPrompt(from)
	}
}

// waitEnd waits for the end of output and closes the open command with the status of the
// shell.
func (s *session) waitEnd() pty.Exit {
	s.t.Helper()
	s.wait("end", func() bool { return s.ended })
	exit := s.p.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, s.tracker.Close(int64(len(s.raw)), shellint.Exit{Code: int64(exit.Code), Known: true})...)
	return exit
}

func write(t testing.TB, path, text string) {
	t.Helper()
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}

// interruptPrompt types Ctrl-C at a prompt until there is a new one: readline notices a
// Ctrl-C that comes too soon after another key only with the next key.
func (s *session) interruptPrompt() { s.t.Helper(); s.typeUntil("\x03", ready) }

// mkfifo makes a named pipe: a shell that reads from it waits for the test.
func mkfifo(t testing.TB, path string) {
	t.Helper()
	if out, err := exec.Command("mkfifo", path).CombinedOutput(); err != nil {
		t.Skipf("mkfifo: %v %s", err, out)
	}
}

// typeUntil types text again and again until want appears: a full-screen program drops
// input while it starts.
func (s *session) typeUntil(text, want string) {
	s.t.Helper()
	s.typeUntilAfter(s.offset(), text, want)
}

// typeUntilAfter is typeUntil where the wanted text may come behind a clean offset.
func (s *session) typeUntilAfter(from int, text, want string) {
	s.t.Helper()
	for range int(patience / anotherTry) {
		s.send(text)
		if s.within(anotherTry, func() bool { return bytes.Contains(s.clean[from:], []byte(want)) }) {
			return
		}
	}
	raw, _ := s.written()
	s.t.Fatalf("no %q after %q in\n%q", want, text, tail(raw))
}

// within says whether cond, called with mu held, becomes true in time.
func (s *session) within(d time.Duration, cond func() bool) bool {
	late := false
	timer := time.AfterFunc(d, func() {
		s.mu.Lock()
		late = true
		s.changed.Broadcast()
		s.mu.Unlock()
	})
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for !cond() {
		if late || s.ended {
			return cond()
		}
		s.changed.Wait()
	}
	return true
}

// child is a command line that says "started" when it is in the foreground, where keys
// reach it.
func child(then string) string { return "sh -c 'echo started; " + then + "'" }
