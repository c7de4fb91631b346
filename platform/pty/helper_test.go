//go:build linux || darwin

package pty_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
	"tether/platform/pty"
)

// helperVar makes the test binary run one of helpers instead of the tests: programs with
// manners that no shell offers.
const helperVar = "PTY_TEST_HELPER"

var helpers = map[string]func(){
	"detach":  detach,
	"daemon":  func() { signal.Ignore(unix.SIGTERM, unix.SIGHUP); testkit.Hang() },
	"chain":   chain,
	"close":   func() { unix.Close(0); unix.Close(1); unix.Close(2); testkit.Hang() },
	"size":    printSizes,
	"front":   runInFront,
	"hang":    func() { fmt.Println("ready"); testkit.Hang() },
	"ignored": startIgnoring,
	"alien":   startAlien,
}

func TestMain(m *testing.M) {
	if name := os.Getenv(helperVar); name != "" {
		helpers[name]()
		return
	}
	if len(os.Args) > 1 && os.Args[1] == proc.LimitsVerb {
		os.Exit(proc.BecomeLimited(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// self is a command that runs a helper.
func self(name string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperVar+"="+name, testkit.ForHang())
	return cmd
}

func expect(err error) {
	if err != nil {
		fmt.Println("helper:", err)
		os.Exit(1)
	}
}

// detach leaves a daemon behind: a new session, another parent, nothing open on the
// terminal.
func detach() {
	cmd := self("daemon")
	proc.InSession(cmd)
	expect(cmd.Start())
	fmt.Println("pid", cmd.Process.Pid)
}

// chain starts a successor in a session of its own and ends, for ever: nobody who looks
// sees the same process twice.
func chain() {
	signal.Ignore(unix.SIGTERM, unix.SIGHUP)
	cmd := self("chain")
	proc.InSession(cmd)
	_ = cmd.Start()
}

func printSizes() {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, unix.SIGWINCH)
	for {
		s, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ)
		expect(err)
		fmt.Printf("%dx%d\n", s.Col, s.Row)
		<-changed
	}
}

// runInFront behaves like a shell with a job in the foreground.
func runInFront() {
	cmd := self("hang")
	cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Foreground: true, Ctty: 0}
	fmt.Println("job:", cmd.Run())
	testkit.Hang()
}

// startAlien leaves a process of another user in the tree, as a program that may change
// users does.
func startAlien() {
	cmd := exec.Command("sh", "-c", `trap "" HUP; echo pid $$; exec sleep 1000`) // the kernel hangs up on whoever is in the foreground
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	cmd.Stdout = os.Stdout
	expect(cmd.Run())
}

// nobody is the user that is there on every system and owns nothing.
const nobody = 65534

// startIgnoring starts a program on a terminal and copies its output, to show its
// inheritance.
func startIgnoring() {
	p, err := pty.Start(pty.Command{Path: "sh", Args: []string{"sh", "-c", "grep SigIgn: /proc/self/status; ls /proc/self/fd"}, Env: os.Environ()})
	expect(err)
	_, err = io.Copy(os.Stdout, p)
	expect(err)
	p.Wait()
	p.Close()
}

// term is a running command under test.
type term struct {
	*pty.PTY
	t   *testing.T
	tag string
}

// start runs argv with the environment of the tests and a tag of its own, and kills it in
// the end.
func start(t *testing.T, env []string, argv ...string) *term {
	t.Helper()
	tag := proc.Tag(fmt.Sprintf("test-%d-%d", os.Getpid(), time.Now().UnixNano()))
	p := must.Get(pty.Start(pty.Command{Path: argv[0], Args: argv, Env: append(append(os.Environ(), env...), tag)}))(t)
	t.Cleanup(func() {
		if err := p.Kill(t.Context(), 0); err != nil {
			t.Errorf("kill in the end: %v", err)
		}
		p.Close()
	})
	return &term{PTY: p, t: t, tag: tag}
}

func startHelper(t *testing.T, name string) *term {
	t.Helper()
	// Under the race detector a program lingers for a second when it ends, unless told
	// otherwise.
	return start(t, []string{helperVar + "=" + name, testkit.ForHang(), "GORACE=atexit_sleep_ms=0"}, os.Args[0])
}

// until reads output up to the first appearance of want and returns it.
func (p *term) until(want string) string {
	p.t.Helper()
	var got []byte
	for b := make([]byte, 4096); !strings.Contains(string(got), want); {
		n, err := p.Read(b)
		if err != nil {
			p.t.Fatalf("%v while waiting for %q in %q", err, want, got)
		}
		got = append(got, b[:n]...)
	}
	return string(got)
}

// rest reads to the end of output.
func (p *term) rest() string {
	p.t.Helper()
	got := must.Get(io.ReadAll(p))(p.t)
	return string(got)
}
