package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"tether/platform/proc"
)

// aloneVar says how far alone has come: "begin" in the process that is left behind, "run"
// in the one that runs the tests.
const aloneVar = "TETHER_TEST_ALONE"

// alone runs the tests of this program in a process without a terminal and without these
// ancestors, if somebody runs them at a terminal or an agent does: their programs would
// have no sign of a person, or be the agent's. Then it exits with the status of the
// tests. Else it returns m, whose result it passes on.
func alone(m interface{ Run() int }) interface{ Run() int } {
	stage := os.Getenv(aloneVar)
	env := proc.WithoutTag(os.Environ())
	line := proc.Lineage(os.Getpid())
	switch {
	case stage == "run":
		os.Unsetenv(aloneVar)
		return reports{m, os.NewFile(3, "status")}
	case stage == "begin":
		c := again(append(env, aloneVar+"=run"), os.NewFile(3, "status"))
		if err := c.Start(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		fmt.Fprintln(c.ExtraFiles[0], c.Process.Pid)
		os.Exit(0)
	case len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-test."): // a program of a test, such as testkit.FloodCommand
		return m
	case !strings.HasSuffix(filepath.Base(os.Args[0]), ".test"), len(line) == 0 || line[0].TTY == 0 && len(env) == len(os.Environ()):
		return m
	}
	r, w, err := os.Pipe()
	if err == nil {
		err = again(append(env, aloneVar+"=begin"), w).Run()
		w.Close()
	}
	var pid, status int
	if _, err2 := fmt.Fscan(r, &pid); err != nil || err2 != nil {
		fmt.Fprintln(os.Stderr, "tests without a terminal:", err, err2)
		os.Exit(2)
	}
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM)
	go func() { // ends with the process
		for sig := range interrupts {
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Signal(sig) // it may have ended
			}
		}
	}()
	text, _ := io.ReadAll(r) // without a number, the tests were killed
	if status, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
		status = 2
	}
	os.Exit(status)
	return nil
}

// again is this program once more, in a session of its own.
func again(env []string, status *os.File) *exec.Cmd {
	c := exec.Command(os.Args[0], os.Args[1:]...)
	c.Env, c.Stdin, c.Stdout, c.Stderr, c.ExtraFiles = env, os.Stdin, os.Stdout, os.Stderr, []*os.File{status}
	proc.InSession(c)
	return c
}

// reports passes on the result of the tests.
type reports struct {
	tests  interface{ Run() int }
	status *os.File
}

func (r reports) Run() int {
	code := r.tests.Run()
	fmt.Fprintln(r.status, code)
	return code
}
