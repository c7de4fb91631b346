package main

import (
	"net"
	"strings"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/pty"
)

// A command that takes longer than a second tells at a terminal what it waits for. None
// of these can be quicker.
func TestSlowCommandsShowProgress(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Parallel() // it waits most of the time
	home := acpHome(t)
	silent := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t) // takes connections by its backlog, and never answers
	defer silent.Close()
	for _, name := range []string{"deaf", "too"} {
		everything(home, "run", "--detach", "--name", name, "--", "ignoreterm")
		if out, status := everything(home, "wait", name, "--pattern", "ready"); status != 0 {
			t.Fatalf("wait: %d %s", status, out)
		}
	}
	for _, c := range []struct {
		line, says string
		gives      string // input that gives up
		exit       int
	}{
		{"pair --without-token ws://" + silent.Addr().String(), "contacting the host…", "\x03", 130},
		{"watch --without-token ws://" + silent.Addr().String(), "connecting to the host…", "\x03", 130},
		{"kill deaf", "waiting for the processes to end…", "", 0},
		{"stop", "waiting for the daemon to end…", "", 0},
	} {
		t.Run(c.line, func(t *testing.T) {
			p := sitAt(t, pty.Command{Path: "tether", Args: append([]string{"tether"}, strings.Fields(c.line)...), Env: append(environ(home), "TERM=xterm")})
			p.sees(c.says)
			p.types(c.gives)
			p.exits(c.exit)
		})
	}
}
