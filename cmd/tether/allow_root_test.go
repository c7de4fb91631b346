package main

import (
	"os"
	"path/filepath"
	"testing"

	"tether/internal/testkit"
	"tether/platform/proc"
)

// The first command of root at a terminal asks once, and the answer is remembered. Input
// after the answer goes to the terminal that starts.
func TestRootIsAskedOnce(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	if !proc.Root() {
		t.Skip("only root is asked")
	}
	home := newHome(t)
	t.Setenv(allowRootVar, "")
	remembered := filepath.Join(home, "state", "allow-root")

	for _, answer := range []string{"\r", "no\r", "\x04"} {
		p := sit(t, "run", "--", "true")
		p.sees("You are root", "[y/N]")
		p.types(answer)
		p.sees("the daemon does not run as root", "tether daemon --background --allow-root")
		p.exits(6)
	}
	p := sit(t, "run", "--", "true")
	p.sees("[y/N]")
	p.types("\x03")
	p.exits(130)
	if _, err := os.Stat(remembered); err == nil {
		t.Error("an answer that was no is remembered as yes")
	}

	p = sit(t, "run", "--", "sh", "-c", "read x; echo got:$x.")
	p.sees("[y/N]")
	p.types("y\rhello\r")
	p.sees("got:hello.")
	p.exits(0)
	if out, status := command(t, "stop"); status != 0 {
		t.Fatalf("stop: %d %s", status, out)
	}
	p = sit(t, "run", "--", "echo", "started")
	p.sees("started")
	p.exits(0)
}
