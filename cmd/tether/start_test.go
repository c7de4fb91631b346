package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/installer"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// tether alone offers sensible steps if nothing is set up, reports each step's effect,
// and later shows the status.
func TestBare(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	home := newHome(t)
	h := &testHost{}
	must.Do(t, h.start(""))
	t.Cleanup(h.stop)
	t.Setenv("HOME", t.TempDir())
	for _, name := range []string{"XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "GEMINI_CLI_HOME", "KIMI_CODE_HOME"} {
		t.Setenv(name, "")
	}
	if err := os.Mkdir(filepath.Join(os.Getenv("HOME"), ".gemini"), 0o700); err != nil { // an agent is installed
		t.Fatal(err)
	}
	bare := func() *person {
		return sitAt(t, pty.Command{Path: "tether", Args: []string{"tether"}, Env: append(os.Environ(), "TERM=xterm", "SHELL=/bin/sh", "PS1=$ ")})
	}

	p := bare()
	p.sees("Nothing is set up here yet", "p  pair with a host", "s  start a shell in a private terminal", "q  quit", "press a key:")
	if strings.Contains(p.shown(), "at login") {
		t.Error("the service is offered before there is a host")
	}
	p.types("x\r") // no keys
	p.types("s")
	p.sees("$ tether shell --private")
	p.types("echo mark$((1+1))\r")
	p.sees("mark2")
	p.types("exit 3\r")
	p.sees("the shell ran in a terminal of the daemon", "press a key:")
	p.types("p")
	p.sees("the host's URL")
	p.types("\r")
	p.sees("press a key:")
	p.types("p")
	p.sees("the host's URL")
	p.types("no-url\r") // the command reports its fault, and the person may continue
	p.sees("$ tether pair no-url", "tether:", "p  pair with a host", "press a key:")
	p.types("a")
	p.sees("$ tether setup agents", "Gemini CLI", "Write these changes?")
	p.types("y\r")
	p.sees("Gemini CLI: written", "press a key:")
	p.types("a") // no key any more: they know tether
	p.types("p")
	testkit.Eventually(t, patience, "the question for the URL", func() bool { return strings.Contains(p.shown(), "the host's URL") })
	if shown := p.shown(); strings.Contains(shown, "setup agents") {
		t.Errorf("the agents' step is still there: %s", shown)
	}
	p.sees("the host's URL")
	p.types("\r")
	p.sees("press a key:")
	p.types("q")
	p.exits(0)

	if out, status := command(t, "stop"); status != 0 {
		t.Fatalf("stop: %d %s", status, out)
	}
	p = bare()
	p.sees("Nothing is set up", "press a key:")
	p.types("\x03")
	p.exits(130)

	if out, status := command(t, "pair", "--without-token", "--name", "work", "ws://"+h.address); status != 0 {
		t.Fatalf("pair: %d %s", status, out)
	}
	testkit.Eventually(t, patience, "the link is up", func() bool {
		out, _ := command(t, "status")
		return strings.Contains(out, "online")
	})
	p = bare()
	p.sees("daemon     running for", "terminals  0 running, ", "host       work (default): online", "next       tether run -- CMD")
	p.exits(0)
	command(t, "stop")
	if out, status := command(t, "setup", "agents", "--undo", "--yes"); status != 0 {
		t.Fatalf("undo: %d %s", status, out)
	}
	must.Do(t, os.MkdirAll(filepath.Join(os.Getenv("HOME"), ".gemini"), 0o700))
	p = bare()
	p.sees("daemon     not running", "hosts      work", "agents     some do not use tether yet: tether setup agents", "next")
	p.exits(0)

	// Without a terminal it is the help, and starts nothing.
	c := exec.Command("tether")
	out, err := c.Output()
	if err != nil || !strings.Contains(string(out), "Usage:") || !strings.Contains(string(out), "tether pair") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(home, "run", "daemon.sock")); err == nil {
		t.Error("a daemon was started")
	}
}

// The offered steps depend on the present state.
func TestStartSteps(t *testing.T) {
	offered := func(g glance) string {
		keys := ""
		for _, s := range startSteps {
			if s.when(&g) {
				keys += string(s.key)
			}
		}
		return keys
	}
	for _, c := range []struct {
		name string
		g    glance
		want string
	}{
		{"nothing", glance{}, "psh"},
		{"a host's program", glance{demo: true}, "pdsh"},
		{"a host", glance{paired: []string{"work"}, demo: true}, "slh"},
		{"a host and a service", glance{paired: []string{"work"}, installed: true}, "sh"},
	} {
		if got := offered(c.g); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// A service manager that does not answer holds tether alone up for a moment only, and
// then nothing is offered that depends on it.
func TestBareDoesNotWaitForTheServiceManager(t *testing.T) {
	asked := serviceStatus
	defer func() { serviceStatus = asked }()
	synctest.Test(t, func(t *testing.T) {
		over := make(chan struct{})
		serviceStatus = func(context.Context) (installer.Status, error) { <-over; return installer.Status{}, nil } // also deaf to ctx
		defer close(over)
		began := time.Now()
		if !installed(t.Context()) {
			t.Error("the service is offered")
		}
		if took := time.Since(began); took > 500*time.Millisecond {
			t.Errorf("it took %s", took)
		}
	})
	serviceStatus = func(context.Context) (installer.Status, error) { return installer.Status{}, nil }
	if installed(t.Context()) {
		t.Error("the service is not offered although it is not installed")
	}
}
