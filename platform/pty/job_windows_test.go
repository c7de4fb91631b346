package pty_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// An agent's programs are in the agent's job, with all that they start, in any terminal;
// the person's programs are not. Each terminal has a job of its own within that, so that
// killing one terminal leaves the other.
func TestAgentsTerminalsShareAJob(t *testing.T) {
	testkit.Leaks(t)
	principal := fmt.Sprintf("test %d", os.Getpid())
	job := must.Get(proc.AgentJob(principal))(t)
	defer job.Close()
	members := func() []int {
		t.Helper()
		return must.Get(job.Pids())(t)
	}
	of := func(env ...string) (*term, []int) {
		c := helper("tree", "1")
		c.Env = append(c.Env, env...)
		p := run(t, c)
		return p, p.tree(2)
	}
	of()
	if pids := members(); len(pids) > 0 {
		t.Errorf("the person's are in it: %v", pids)
	}
	one, ofOne := of(proc.AgentTag(principal))
	two, ofTwo := of(proc.AgentTag("no other"), proc.AgentTag(principal))
	both := members()
	for _, pid := range slices.Concat(ofOne, ofTwo, []int{one.Pid(), two.Pid()}) {
		if !slices.Contains(both, pid) {
			t.Errorf("%d is not in the job: %v", pid, both)
		}
	}
	check.OK(t, one.Kill(t.Context(), 0))
	left := members()
	for _, pid := range ofOne {
		if slices.Contains(left, pid) {
			t.Errorf("%d was killed and is in the job: %v", pid, left)
		}
	}
	for _, pid := range ofTwo {
		if !slices.Contains(left, pid) {
			t.Errorf("%d was killed with the other terminal: %v", pid, left)
		}
	}
	one.Close()
	two.Close()
}

var printedPid = regexp.MustCompile(`pid (\d+)\.`)

// tree reads the output of growTree until it has the numbers of n processes, and returns
// them.
func (p *term) tree(n int) (pids []int) {
	p.t.Helper()
	var got []byte
	for b := make([]byte, 4096); len(pids) < n; {
		k, err := p.Read(b)
		if err != nil {
			p.t.Fatalf("%v after %q", err, got)
		}
		got, pids = append(got, b[:k]...), nil
		for _, m := range printedPid.FindAllStringSubmatch(text(got), -1) {
			pid, _ := strconv.Atoi(m[1])
			pids = append(pids, pid)
		}
	}
	return pids
}
