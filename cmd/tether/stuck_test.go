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

// everything runs tether in a home and returns what it prints, errors too, and its status.
func everything(home string, args ...string) (printed string, status int) {
	c := exec.Command("tether", args...)
	c.Env = environ(home)
	out, _ := c.CombinedOutput() // the status says it
	return string(out), c.ProcessState.ExitCode()
}

// A daemon that does not answer holds no command up for good, and each says what to do, which helps.
func TestAStuckDaemon(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Parallel() // it waits most of the time
	home := acpHome(t)
	if out, status := everything(home, "run", "--detach", "--private", "--name", "goeson", "--", "sleep", "1000"); status != 0 {
		t.Fatalf("run: %d %s", status, out)
	}
	out, _ := everything(home, "status", "--json")
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
			out, status := everything(home, strings.Fields(line)...)
			if status != want || !strings.Contains(out, "not answer") || !strings.Contains(out, "end process "+pid+", then: tether daemon --background") {
				t.Errorf("tether %s: status %d:\n%s", line, status, out)
			}
		})
	}
	asking.Wait()
	signal("KILL")
	testkit.Eventually(t, patience, "it is gone", func() bool { _, status := everything(home, "status"); return status == local.ExitNotRunning })
	if out, status := everything(home, "daemon", "--background"); status != 0 {
		t.Errorf("another daemon: status %d:\n%s", status, out)
	}
	testkit.Eventually(t, patience, "another daemon has it", func() bool {
		out, status := everything(home, "ls")
		return status == 0 && strings.Contains(out, "goeson") && strings.Contains(out, "running")
	})
}

// To end several terminals takes as long as the slowest, not as all of them.
func TestKillsAtOnce(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Parallel()
	home := acpHome(t)
	const n = 3
	var names []string
	for i := range n {
		names = append(names, "deaf"+strconv.Itoa(i))
		everything(home, "run", "--detach", "--private", "--name", names[i], "--", "sh", "-c", `trap "" TERM HUP; echo deaf; while :; do sleep 1; done`)
		if out, status := everything(home, "wait", names[i], "--pattern", "deaf"); status != 0 {
			t.Fatalf("wait: %d %s", status, out)
		}
	}
	began := time.Now()
	out, status := everything(home, append([]string{"kill", "nothing"}, names...)...)
	t.Logf("it took %v", time.Since(began))
	if status != local.ExitNoTerminal || strings.Count(out, "killed SIGKILL") != n || !strings.Contains(out, "nothing: no such terminal") {
		t.Errorf("status %d:\n%s", status, out)
	}
}
