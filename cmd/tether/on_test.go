package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tether/events"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// tether on gives each event to a command on its standard input, never in its arguments,
// and goes on where the last run with the same file ended.
func TestOn(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	dir := t.TempDir()
	trigger, cursor, got := filepath.Join(dir, "go"), filepath.Join(dir, "cursor"), filepath.Join(dir, "got")
	command(t, "run", "--detach", "--name", "web", "--", "sh", "-c", "echo ready; while [ ! -e "+trigger+" ]; do sleep 0.05; done; echo 'error: $(touch evil)'; exec sleep 600")
	command(t, "wait", "web", "--pattern", "ready")
	on := exec.Command("tether", "on", "web", "--pattern", "^error", "--once", "--cursor-file", cursor, "--", "sh", "-c", `cat >"$1"; echo "$#"; exit 3`, "sh", got)
	on.Dir = dir
	var out testkit.Output
	on.Stdout, on.Stderr = &out, &out
	must.Do(t, on.Start())
	testkit.Eventually(t, patience, "it listens", func() bool { _, err := os.Stat(cursor); return err == nil })
	must.Do(t, os.WriteFile(trigger, nil, 0o600))
	_ = on.Wait() // its status is that of the command
	if status := on.ProcessState.ExitCode(); status != 3 {
		t.Errorf("status %d: %s", status, out.String())
	}
	text, err := os.ReadFile(got)
	if err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	var ev events.Event
	if err := json.Unmarshal(text, &ev); err != nil || ev.Name != events.Line || ev.Data["line"] != "error: $(touch evil)" || ev.ID == "" || ev.Meta[events.MetaUntrusted] != true {
		t.Errorf("%v: %s", err, text)
	}
	if !strings.HasPrefix(out.String(), "1\n") {
		t.Errorf("it printed %s", out.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "evil")); err == nil {
		t.Error("text of a program was run")
	}
}
