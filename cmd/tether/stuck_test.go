package main

import (
	"encoding/json"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/agent/local"
	"tether/internal/testkit"
)

// everything runs tether and returns what it prints, errors too, and its status.
func everything(args ...string) (printed string, status int) {
	c := exec.Command("tether", args...)
	out, _ := c.CombinedOutput() // the status says it
	return string(out), c.ProcessState.ExitCode()
}

// A daemon that does not answer holds no command up for good, and each says what to do, which helps.
func TestAStuckDaemon(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	command(t, "run", "--detach", "--private", "--name", "goeson", "--", "sleep", "1000")
	out, _ := command(t, "status", "--json")
	var s local.Status
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	pid := strconv.Itoa(s.Pid)
	signal := func(name string) {
		t.Helper()
		if out, err := exec.Command("kill", "-"+name, pid).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	signal("STOP")
	var asking sync.WaitGroup // at the same time, since each waits for seconds
	for line, want := range map[string]int{
		"status": local.ExitTimeout, "status --json": local.ExitTimeout, "ls": local.ExitTimeout, "stop": local.ExitTimeout,
		"daemon --replace --background": local.ExitTimeout, "doctor": local.ExitFailure,
	} {
		asking.Go(func() {
			out, status := everything(strings.Fields(line)...)
			if status != want || !strings.Contains(out, "not answer") || !strings.Contains(out, "end process "+pid+", then: tether daemon --background") {
				t.Errorf("tether %s: status %d:\n%s", line, status, out)
			}
		})
	}
	asking.Wait()
	signal("KILL")
	testkit.Eventually(t, patience, "it is gone", func() bool { _, status := command(t, "status"); return status == local.ExitNotRunning })
	command(t, "daemon", "--background")
	if out, status := command(t, "ls"); status != 0 || !strings.Contains(out, "goeson") || !strings.Contains(out, "running") {
		t.Errorf("with another daemon: status %d:\n%s", status, out)
	}
}

// To end several terminals takes as long as the slowest, not as all of them.
func TestKillsAtOnce(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	const n = 3
	var names []string
	for i := range n {
		names = append(names, "deaf"+strconv.Itoa(i))
		command(t, "run", "--detach", "--private", "--name", names[i], "--", "sh", "-c", `trap "" TERM HUP; echo deaf; while :; do sleep 1; done`)
		command(t, "wait", names[i], "--pattern", "deaf")
	}
	began := time.Now()
	out, status := everything(append([]string{"kill", "nothing"}, names...)...)
	t.Logf("it took %v", time.Since(began))
	if status != local.ExitNoTerminal || strings.Count(out, "killed SIGKILL") != n || !strings.Contains(out, "nothing: no such terminal") {
		t.Errorf("status %d:\n%s", status, out)
	}
}
