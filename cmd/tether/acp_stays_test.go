package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tether/agent"
	"tether/agent/local"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// The agent that tether acp has started stays that agent when the proxy was killed, and
// over the end of daemons, also without a mark in its environment: the record of its
// process says so.
func TestAgentStaysOneWithoutItsProxy(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	home := newHome(t)
	dir := t.TempDir()
	t.Setenv("OUT", dir)
	asks := func(n string) string {
		return `does "file:$OUT/go` + n + `"; tether whoami >"$OUT/says` + n + `.new"; mv "$OUT/says` + n + `.new" "$OUT/says` + n + `"; `
	}
	proxy := exec.Command("tether", "acp", "--as", "bob", "--", "env", "-u", "TETHER_AGENT", "-u", "TETHER_TERMINAL",
		"sh", "-c", asks("0")+asks("1")+asks("2")+asks("3")+"true")
	in, err := proxy.StdinPipe()
	must.Do(t, err)
	defer in.Close()
	must.Do(t, proxy.Start())
	t.Cleanup(func() { // where the test has failed
		for _, r := range local.OpenAgents(dirsOf(home).State).List() {
			kill(r.Pid)
		}
		for n := range 4 {
			_ = os.WriteFile(filepath.Join(dir, "go"+strconv.Itoa(n)), nil, 0o600) // ends the process that waits for it
		}
	})
	step := 0
	says := func(when string) {
		t.Helper()
		n := strconv.Itoa(step)
		step++
		must.Do(t, os.WriteFile(filepath.Join(dir, "go"+n), nil, 0o600))
		var said []byte
		testkit.Eventually(t, patience, "the agent has asked who it is", func() bool {
			said, err = os.ReadFile(filepath.Join(dir, "says"+n))
			return err == nil
		})
		if !regexp.MustCompile(`^agent bob: process \d+ \("sh"\) is agent bob\n$`).Match(said) {
			t.Errorf("%s it counts as %s", when, said)
		}
	}
	says("beside its proxy")
	must.Do(t, proxy.Process.Kill())
	_ = proxy.Wait() // it was killed
	says("without its proxy")
	daemon := agent.Running(dirsOf(home))
	if p, err := os.FindProcess(daemon); err != nil || p.Kill() != nil {
		t.Fatalf("the daemon, process %d, cannot be killed: %v", daemon, err)
	}
	testkit.Eventually(t, patience, "the daemon is gone", func() bool { return agent.Running(dirsOf(home)) == 0 })
	says("after its daemon was killed, at one that it has started itself,")
	if _, status := command(t, "stop"); status != 0 {
		t.Fatal("the daemon cannot be stopped")
	}
	if _, status := command(t, "daemon", "--background"); status != 0 {
		t.Fatal("no daemon starts")
	}
	says("at the person's next daemon")
	if out, _ := command(t, "whoami"); !strings.HasPrefix(out, "user: ") {
		t.Errorf("the person counts as %s", out)
	}
	testkit.Eventually(t, patience, "the record ends with the agent", func() bool { return len(local.OpenAgents(dirsOf(home).State).List()) == 0 })
}
