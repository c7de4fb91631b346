package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tether/agent/localapi"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// A background process of a terminal ends when the terminal is killed, even after its
// leader has ended, although it ignores a hang-up, and also for the next daemon.
func TestKillOfAnExitedTerminalEndsItsProcesses(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	m := newMortal(t)
	for _, next := range []func(){func() {}, func() { m.kill(); m.start("daemon") }} {
		x := m.spawn(localapi.SpawnRequest{Command: []string{"sh", "-c", `(trap "" HUP; exec sleep 999) & ` + m.untilGo()}, Private: true})
		m.goOn(x.ID, "999")
		m.await("it has exited", func(localapi.Status) bool { return m.find(x.ID).Exit != nil })
		left := func() int {
			all, err := proc.Tagged(proc.Tag(x.ID))
			if errors.Is(err, proc.ErrUnsupported) {
				t.Skip("environments of processes are not shown here")
			}
			must.Do(t, err)
			return len(all)
		}
		if n := left(); n != 1 {
			t.Fatalf("%d processes are left, want the one in the background", n)
		}
		next()
		t.Setenv(proc.TagVar, x.ID)
		other := m.spawn(localapi.SpawnRequest{Command: []string{"sleep", "999"}, Private: true}) // as if it was started there
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

// untilGo is the rest of a line of sh, in which the leader of a terminal waits for goOn.
func (m *mortal) untilGo() string {
	return "until test -e " + filepath.Join(m.home, "go-") + "$" + proc.TagVar + "; do sleep .02; done"
}

// goOn lets the leader of a terminal end as soon as its sleep in the background runs,
// which a hang-up would end before.
func (m *mortal) goOn(id, seconds string) {
	m.t.Helper()
	testkit.Eventually(m.t, patience, "the sleep runs", func() bool {
		all, err := proc.Tagged(proc.Tag(id))
		if errors.Is(err, proc.ErrUnsupported) {
			m.t.Skip("environments of processes are not shown here")
		}
		return slices.ContainsFunc(all, func(p proc.Info) bool {
			line := proc.Lineage(p.Pid)
			return len(line) > 0 && slices.Equal(line[0].Argv, []string{"sleep", seconds})
		})
	})
	must.Do(m.t, os.WriteFile(filepath.Join(m.home, "go-"+id), nil, 0o600))
}

// Stop ends background processes that exited terminals of agents have left, and reports
// how many processes of the person's continue: with a daemon, and without one.
func TestStopEndsAgentsLeftoverProcesses(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	for _, c := range []struct {
		name   string
		before func(*mortal)
		says   []string
	}{
		{"with a daemon", func(*mortal) {}, nil},
		{"without a daemon", (*mortal).kill, []string{"1 terminal was still running and was ended", "leftover processes of 1 agent terminal were ended"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newMortal(t)
			mine := m.spawn(localapi.SpawnRequest{Command: []string{"sh", "-c", `(trap "" HUP; exec sleep 999) & ` + m.untilGo()}, Name: "mine", Private: true})
			runs := m.spawn(localapi.SpawnRequest{Command: []string{"sleep", "997"}, Private: true})
			theirs := must.Get(m.door.As("claude").Spawn(t.Context(), localapi.SpawnRequest{Line: "nohup sleep 998 & " + m.untilGo(), Cwd: m.home}))(t)
			m.goOn(mine.ID, "999")
			m.goOn(theirs.ID, "998")
			m.await("both have exited", func(localapi.Status) bool { return m.find(mine.ID).Exit != nil && m.find(theirs.ID).Exit != nil })
			left := func(id string) []proc.Info {
				all, err := proc.Tagged(proc.Tag(id))
				if errors.Is(err, proc.ErrUnsupported) {
					t.Skip("environments of processes are not shown here")
				}
				must.Do(t, err)
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
			c.before(m)
			a, printed := printing(t)
			check.OK(t, a.stop(t.Context(), false))
			if n := len(left(theirs.ID)) + len(left(runs.ID)); n > 0 {
				t.Errorf("%d processes of the agent's and of the running terminal run on", n)
			}
			out := printed()
			if len(left(mine.ID)) != 1 {
				t.Errorf("%d processes of the person's exited terminal run on, want 1", len(left(mine.ID)))
			}
			for _, want := range append(c.says, "1 process of mine is still running") {
				if !strings.Contains(out, want) {
					t.Errorf("it says %q, want %q", out, want)
				}
			}
			if ids := m.holders(); len(ids) > 0 {
				t.Errorf("holders are left: %v", ids)
			}
		})
	}
}
