package holder_test

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"tether/agent/holder"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// A process that waits becomes the next holder, but not an agent's; one that somebody has
// ended is replaced, and one that nobody needs ends.
func TestSpare(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("this system does not list processes so")
	}
	o := options(t)
	o.Spare = new(holder.Spare)
	t.Cleanup(o.Spare.Close)
	spares := func() (found []int) {
		for _, entry := range must.Get(os.ReadDir("/proc"))(t) {
			line, _ := os.ReadFile("/proc/" + entry.Name() + "/cmdline")
			if pid, err := strconv.Atoi(entry.Name()); err == nil && string(line) == o.Argv[0]+"\x00holder\x00spare\x00" {
				found = append(found, pid)
			}
		}
		return found
	}
	var known []int
	waits := func() int {
		t.Helper()
		must.Do(t, o.Spare.Make(o))
		must.Do(t, o.Spare.Make(o)) // one is enough
		now := slices.DeleteFunc(spares(), func(pid int) bool { return slices.Contains(known, pid) })
		if len(now) != 1 {
			t.Fatalf("%d new processes, want 1", len(now))
		}
		known = append(known, now...)
		return now[0]
	}
	parent := func(c *holder.Client) int { return must.Get(proc.Lookup(c.Pid()))(t).Parent }
	first := waits()
	agents := sh("exec sleep 1000")
	agents.Env = append(agents.Env, proc.AgentTag("agent:bob"))
	if c := spawn(t, o, holder.Spec{ID: "agents", Command: agents}); parent(c) == first {
		t.Error("an agent's terminal has the waiting process, which has no mark of the agent")
	}
	if c := spawn(t, o, holder.Spec{ID: "a", Command: sh("exec sleep 1000")}); parent(c) != first {
		t.Errorf("the holder is %d, want %d", parent(c), first)
	}
	spawn(t, o, holder.Spec{ID: "b", Command: sh("exec sleep 1000")})
	killed := must.Get(os.FindProcess(waits()))(t)
	must.Do(t, killed.Kill())
	testkit.Eventually(t, testkit.Patience, "it has ended", func() bool { return !slices.Contains(spares(), killed.Pid) })
	spawn(t, o, holder.Spec{ID: "c", Command: sh("exec sleep 1000")})
	left := waits()
	o.Spare.Close()
	must.Do(t, o.Spare.Make(o))
	testkit.Eventually(t, testkit.Patience, "it has ended", func() bool { return !slices.Contains(spares(), left) })
}
