package main

import (
	"errors"
	"os"
	"strings"
	"testing"

	"tether/agent/local"
	"tether/internal/testkit"
	"tether/platform/proc"
)

// What a terminal has left in the background ends when the terminal is killed, also after its leader has ended, although it ignores a
// hang-up, and also for the daemon after the one that started it.
func TestKillOfAnExitedTerminalEndsWhatItLeft(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	m := newMortal(t)
	for _, next := range []func(){func() {}, func() { m.kill(); m.start("daemon") }} {
		x := m.spawn(local.SpawnRequest{Command: []string{"sh", "-c", `(trap "" HUP; exec sleep 999) & sleep .3`}, Private: true})
		m.await("it has exited", func(local.Status) bool { return m.find(x.ID).Exit != nil })
		left := func() int {
			all, err := proc.Tagged(proc.Tag(x.ID))
			if errors.Is(err, proc.ErrUnsupported) {
				t.Skip("environments of processes are not shown here")
			}
			if err != nil {
				t.Fatal(err)
			}
			return len(all)
		}
		if n := left(); n != 1 {
			t.Fatalf("%d processes are left, want the one in the background", n)
		}
		next()
		t.Setenv(proc.TagVar, x.ID)
		other := m.spawn(local.SpawnRequest{Command: []string{"sleep", "999"}, Private: true}) // as if it was started there
		os.Unsetenv(proc.TagVar)
		for range 2 {
			if ended, err := m.door.Kill(t.Context(), x.ID); err != nil || ended.Exit == nil || ended.Exit.Code != 0 {
				t.Errorf("kill: %+v, %v", ended.Exit, err)
			}
			if n := left(); n > 0 {
				t.Errorf("%d processes are left after the kill", n)
			}
		}
		if m.find(other.ID).Exit != nil {
			t.Error("a terminal that was started from there has ended, too")
		}
	}
}

// Stop ends what exited terminals of agents have left in the background, and says how many processes of the person's run on.
func TestStopEndsWhatAgentsHaveLeft(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	m := newMortal(t)
	line := `(trap "" HUP; exec sleep 999)& sleep .3`
	mine := m.spawn(local.SpawnRequest{Command: []string{"sh", "-c", line}, Name: "mine", Private: true})
	theirs, err := m.door.As("claude").Spawn(t.Context(), local.SpawnRequest{Line: "nohup sleep 998 & sleep .3", Cwd: m.home})
	if err != nil {
		t.Fatal(err)
	}
	m.await("both have exited", func(local.Status) bool { return m.find(mine.ID).Exit != nil && m.find(theirs.ID).Exit != nil })
	left := func(id string) []proc.Info {
		all, err := proc.Tagged(proc.Tag(id))
		if errors.Is(err, proc.ErrUnsupported) {
			t.Skip("environments of processes are not shown here")
		}
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	t.Cleanup(func() {
		for _, p := range left(mine.ID) {
			if process, err := os.FindProcess(p.Pid); err == nil {
				_ = process.Kill()
			}
		}
	})
	if n := len(left(theirs.ID)); n != 1 {
		t.Fatalf("%d processes of the agent's are left, want 1", n)
	}
	a, printed := printing(t)
	if err := a.stop(t.Context(), false, false); err != nil {
		t.Error(err)
	}
	if n := len(left(theirs.ID)); n > 0 {
		t.Errorf("%d processes of the agent's run on", n)
	}
	if out := printed(); len(left(mine.ID)) != 1 || !strings.Contains(out, "1 process of mine runs on") {
		t.Errorf("it says %q, and %d of the person's run on", out, len(left(mine.ID)))
	}
}
