package pty_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// helperVar makes the test binary run one of helpers instead of the tests.
const helperVar = "PTY_TEST_HELPER"

var helpers = map[string]func(){
	"argv":      printArgv,
	"code":      func() { n, _ := strconv.ParseUint(os.Args[1], 10, 32); os.Exit(int(n)) },
	"echo":      echo,
	"env":       printEnv,
	"interrupt": interrupted,
	"hang":      func() { fmt.Println("ready"); testkit.Hang() },
	"line":      func() { fmt.Printf("<%x>\n", windows.UTF16PtrToString(windows.GetCommandLine())) },
	"late":      func() { <-time.After(300 * time.Millisecond); fmt.Println("late news") },
	"leave":     func() { expect(self("late").Start()); os.Exit(7) },
	"lines":     printLines,
	"tree":      growTree,
	"print":     func() { fmt.Print(os.Getenv("TEXT")) },
}

func TestMain(m *testing.M) {
	if name := os.Getenv(helperVar); name != "" {
		helpers[name]()
		return
	}
	os.Exit(m.Run())
}

// interrupted waits for Ctrl+C.
func interrupted() {
	came := make(chan os.Signal, 1)
	signal.Notify(came, os.Interrupt)
	fmt.Println("ready")
	<-came
	fmt.Println("interrupted")
	os.Exit(42)
}

func expect(err error) {
	if err != nil {
		fmt.Println("helper:", err)
		os.Exit(1)
	}
}

// self is a command that runs a helper on this program's console.
func self(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), helperVar+"="+name, testkit.ForHang())
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd
}

func printArgv() {
	for _, a := range os.Args[1:] {
		fmt.Printf("<%x>\n", a)
	}
}

func printEnv() {
	for _, e := range os.Environ() {
		fmt.Printf("<%x>\n", e)
	}
}

func printLines() {
	n, _ := strconv.Atoi(os.Args[1])
	out := bufio.NewWriter(os.Stdout)
	for i := range n {
		fmt.Fprintf(out, "line %d.\n", i)
	}
	out.Flush()
}

func echo() {
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("ready")
	for in.Scan() {
		fmt.Printf("got %s.\n", in.Text())
	}
}

// growTree starts a child and a grandchild that hang, and prints their numbers.
func growTree() {
	if len(os.Args) > 1 && os.Args[1] != "0" {
		n, _ := strconv.Atoi(os.Args[1])
		expect(self("tree", strconv.Itoa(n-1)).Start())
	}
	fmt.Printf("pid %d.\n", os.Getpid())
	testkit.Hang()
}

// patience bounds the wait for an expected event.
const patience = testkit.Patience

// term is a running command under test.
type term struct {
	*pty.PTY
	t *testing.T
}

// wide is so many columns that nothing in these tests is wrapped.
var wide = pty.Size{Cols: 1000, Rows: 50}

// helper is the command that runs a helper.
func helper(name string, args ...string) pty.Command {
	return pty.Command{
		Path: os.Args[0], Args: append([]string{os.Args[0]}, args...), Env: append(os.Environ(), helperVar+"="+name, testkit.ForHang()), Size: wide,
	}
}

// start runs a helper, and kills it in the end.
func start(t *testing.T, name string, args ...string) *term {
	t.Helper()
	return run(t, helper(name, args...))
}

func run(t *testing.T, c pty.Command) *term {
	t.Helper()
	p := must.Get(pty.Start(c))(t)
	t.Cleanup(func() {
		if err := p.Kill(t.Context(), 0); err != nil {
			t.Errorf("kill in the end: %v", err)
		}
		p.Close()
	})
	return &term{PTY: p, t: t}
}

// escapes are the sequences with which a console host paints.
var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[a-zA-Z]|\x1b\\][^\x07\x1b]*(\x07|\x1b\\\\)|\x1b[()][A-Z0-9]")

// text is the text that a console printed, without the painting.
func text(b []byte) string {
	return strings.ReplaceAll(string(escapes.ReplaceAll(b, nil)), "\r\n", "\n")
}

// until reads output up to the first appearance of want and returns it.
func (p *term) until(want string) string {
	p.t.Helper()
	var got []byte
	for b := make([]byte, 4096); !strings.Contains(text(got), want); {
		n, err := p.Read(b)
		got = append(got, b[:n]...)
		if err != nil {
			p.t.Fatalf("%v while waiting for %q in %q", err, want, got)
		}
	}
	return text(got)
}

// rest reads to the end of output.
func (p *term) rest() string {
	p.t.Helper()
	got := must.Get(io.ReadAll(p))(p.t)
	return text(got)
}

// wantEnd fails the test if the program does not end.
func (p *term) wantEnd() pty.Exit {
	p.t.Helper()
	select {
	case <-p.Exited():
	case <-time.After(patience):
		p.t.Fatal("the program did not end")
	}
	return p.Wait()
}

// notOnWine skips a test of a feature that Wine 10 lacks. make test-windows names each.
func notOnWine(t *testing.T, why error) {
	t.Helper()
	if errors.Is(why, errNotImplemented) {
		t.Skipf("Wine: %v", why)
	}
}
