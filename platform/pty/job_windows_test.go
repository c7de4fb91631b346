package pty_test

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"tether/internal/testkit"
	"tether/platform/proc"
)

// An agent's programs are in the agent's job, with all that they start, in any terminal; the person's programs are not. Each terminal has a
// job of its own within that, so that killing one terminal leaves the other.
func TestAgentsTerminalsShareAJob(t *testing.T) {
	testkit.Leaks(t)
	principal := fmt.Sprintf("test %d", os.Getpid())
	job, err := proc.AgentJob(principal)
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	inside := func(want int) []int {
		t.Helper()
		var pids []int
		testkit.Eventually(t, patience, fmt.Sprintf("%d are in the job", want), func() bool {
			pids, err = job.Pids()
			return err == nil && len(pids) == want
		})
		return pids
	}
	of := func(env ...string) *term {
		c := helper("tree", "1")
		c.Env = append(c.Env, env...)
		return run(t, c)
	}
	of().until("pid")
	if pids := inside(0); len(pids) > 0 {
		t.Errorf("the person's are in it: %v", pids)
	}
	one, two := of(proc.AgentTag(principal)), of(proc.AgentTag("no other"), proc.AgentTag(principal))
	pids := inside(4)
	for _, p := range []*term{one, two} {
		if !slices.Contains(pids, p.Pid()) {
			t.Errorf("%d is not in the job: %v", p.Pid(), pids)
		}
	}
	if err := one.Kill(t.Context(), 0); err != nil {
		t.Error(err)
	}
	if pids := inside(2); !slices.Contains(pids, two.Pid()) {
		t.Errorf("after one was killed: %v, want %d", pids, two.Pid())
	}
	one.Close()
	two.Close()
}
