//go:build windows

package main

import (
	"os"
	"path/filepath"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

func TestScriptsOnWindows(t *testing.T) {
	var env []string
	for _, name := range []string{"USERPROFILE", "LOCALAPPDATA", "APPDATA", "ComSpec", "PATHEXT", "TEMP"} {
		env = append(env, name+"="+os.Getenv(name))
	}
	runScripts(t, "testdata/windows", filepath.Join(os.Getenv("SystemRoot"), "System32", "cmd.exe"), env...)
}

// A person at a console: keys go to the child, ~. leaves it, and they come back.
func TestAttachedOnWindows(t *testing.T) {
	newHome(t)
	command(t, "run", "--private", "--", "cmd", "/c", "exit") // so that there is a daemon, outside of the person's terminal
	p := sit(t, "run", "--private", "--name", "mine", "--", "cmd", "/k", "prompt $g")
	p.sees(">")
	p.types("set /a 6*7\r")
	p.sees("42")
	p.types("echo caf\u00e9 \u20ac\r")
	p.sees("café €")
	p.types("\r~.")
	p.sees("detached from", "tether attach")
	p.exits(0)
	back := sit(t, "attach", "mine")
	back.types("\r")
	back.sees(">")
	back.types("exit 300\r")
	back.exits(300)
}

// Who closes the window leaves the terminal: it runs on.
func TestClosedWindowLeavesTheTerminal(t *testing.T) {
	testkit.NotOnWine(t, "its console host tells programs nothing when it is closed")
	newHome(t)
	p := sit(t, "run", "--private", "--name", "mine", "--", "cmd", "/k", "prompt $g")
	p.sees(">")
	must.Do(t, p.pty.Kill(t.Context(), patience))
	out, status := command(t, "read", "mine")
	if status != 0 {
		t.Errorf("status %d: %s", status, out)
	}
}
