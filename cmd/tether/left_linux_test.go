package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tether/agent/localapi"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// A process that an agent's terminal has left, in its own session and without its
// environment, counts as that agent for the daemon that follows a killed one: it may not
// do what only a person may.
func TestAgentsLeftoverProcessesAfterAKilledDaemon(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	configure(t, "policy.block_list", "off") // the agent calls tether
	m := newMortal(t)
	file := filepath.Join(m.home, "left")
	const orphan = `echo $$ >$0.pid.new; mv $0.pid.new $0.pid; until test -e $0.go; do sleep .02; done
		{ tether whoami; tether token create --person me; echo "status $?"; } >$0.new 2>&1; mv $0.new $0; exec sleep 1000`
	line := "setsid env -i PATH='" + os.Getenv("PATH") + "' TETHER_HOME='" + m.home + "' " + allowRootVar + "=1 sh -c '" + orphan + "' " + file + " </dev/null >/dev/null 2>&1 &"
	agents, err := m.door.As("mallory").Spawn(t.Context(), localapi.SpawnRequest{Line: line + " until test -e " + file + ".pid; do sleep .02; done", Cwd: m.home, Env: os.Environ()})
	must.Do(t, err)
	testkit.Eventually(t, patience, "the agent's terminal has exited", func() bool { return m.find(agents.ID).Exit != nil })
	m.kill()
	m.start("daemon")
	must.Do(t, os.WriteFile(file+".go", nil, 0o600))
	var said []byte
	testkit.Eventually(t, patience, "the program has asked", func() bool {
		said, err = os.ReadFile(file)
		return err == nil
	})
	if got := string(said); !strings.HasPrefix(got, "agent mallory: ") || !strings.Contains(got, "agent mallory may not POST /v1/tokens") {
		t.Errorf("it is told:\n%s\nwant agent mallory, and a refusal to create a token", got)
	}
	text := must.Get(os.ReadFile(file + ".pid"))(t)
	pid := must.Get(strconv.Atoi(strings.TrimSpace(string(text))))(t)
	if _, status := command(t, "stop"); status != 0 {
		t.Errorf("tether stop: %d", status)
	}
	testkit.Eventually(t, patience, "stop ends the program", func() bool {
		p, err := proc.Lookup(pid)
		return err != nil || p.Zombie
	})
}
