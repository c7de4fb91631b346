//go:build linux

package holder_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"tether/agent/holder"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
	"tether/platform/pty"
)

// leaving is a command of an agent's that leaves a program in a session of its own,
// without parents and environment, and writes its number into the file.
func leaving(file string) pty.Command {
	c := sh("(env -i setsid sh -c 'trap \"\" HUP; echo $$ >" + file + ".new; mv " + file + ".new " + file + "; exec sleep 999' &); until test -e " + file + "; do sleep .02; done")
	c.Env = append(c.Env, proc.Tag("x"), proc.AgentTag("claude"))
	return c
}

// agentOf is the nearest agent in the lineage of a process, "" for none.
func agentOf(pid int) string {
	for _, a := range proc.Lineage(pid) {
		if len(a.Agents) > 0 {
			return a.Agents[0]
		}
	}
	return ""
}

func gone(pid int) bool {
	p, err := proc.Lookup(pid)
	return err != nil || p.Zombie
}

// A process that an agent's terminal has left counts as the agent's after its leader has
// ended, for the next daemon, and when nobody knows the terminal any more; its holder
// keeps nothing else, and ends with it.
func TestHolderStaysForAnAgentsLeftoverProcesses(t *testing.T) {
	o := options(t)
	file := filepath.Join(t.TempDir(), "pid")
	h := spawn(t, o, holder.Spec{ID: "x", Command: leaving(file)})
	stream(t, h, 0)
	all(t, h)
	h.Wait()
	pid := pidIn(t, file)
	if agent := agentOf(pid); agent != "claude" {
		t.Fatalf("after the leader's end it is agent %q's: %+v", agent, proc.Lineage(pid))
	}
	h.Close()
	next := dial(t, o, "x")
	if n := next.Left(); n != 1 {
		t.Errorf("%d processes are left, want 1", n)
	}
	forget(t, next)
	if ids, err := holder.List(o.Dir); len(ids) > 0 || err != nil {
		t.Errorf("listed %v, %v", ids, err)
	}
	if agent := agentOf(pid); agent != "claude" || gone(pid) {
		t.Errorf("without a terminal it is agent %q's: %+v", agent, proc.Lineage(pid))
	}
	if n, err := holder.EndStaying(t.Context(), o.Dir); n != 1 || err != nil {
		t.Errorf("ended %d, %v", n, err)
	}
	if !gone(pid) {
		t.Error("what was left runs on")
	}
	testkit.Eventually(t, testkit.Patience, "nothing is left in the directory", func() bool {
		left, err := os.ReadDir(o.Dir)
		return len(left) == 0 && err == nil
	})
}

// The holder ends by itself with the last process, and a kill after the leader's end ends
// those processes.
func TestKillEndsAnAgentsLeftoverProcesses(t *testing.T) {
	o := options(t)
	for _, how := range []string{"kill", "signal"} {
		file := filepath.Join(t.TempDir(), "pid")
		h := spawn(t, o, holder.Spec{ID: how, Command: leaving(file)})
		stream(t, h, 0)
		all(t, h)
		h.Wait()
		pid := pidIn(t, file)
		if how == "kill" {
			must.Do(t, h.Kill(t.Context(), 0))
			if !gone(pid) {
				t.Error("what was left runs on")
			}
			forget(t, h)
			continue
		}
		at := slices.IndexFunc(proc.Lineage(pid), func(a proc.Ancestor) bool { return len(a.Agents) > 0 })
		keeper := proc.Lineage(pid)[at].Pid
		forget(t, h)
		send(t, "KILL", strconv.Itoa(pid))
		testkit.Eventually(t, testkit.Patience, "the holder has ended", func() bool { return gone(keeper) })
	}
}

// Orphans that end do not stay zombies while the terminal runs.
func TestOrphansAreReaped(t *testing.T) {
	o := options(t)
	c := sh("for i in 1 2 3 4 5; do (sleep .01 &); done; read x")
	c.Env = append(c.Env, proc.AgentTag("claude"))
	h := spawn(t, o, holder.Spec{ID: "x", Command: c})
	keeper := must.Get(proc.Lookup(h.Pid()))(t)
	testkit.Eventually(t, testkit.Patience, "only the leader is left", func() bool {
		all, err := proc.List()
		below := proc.Descendants(all, keeper.Parent)
		return err == nil && len(below) == 1 && below[0].Pid == h.Pid()
	})
}
