package testkit

import (
	"context"
	"crypto/rand"
	"os/exec"
	"sync"
	"testing"
	"time"

	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// treePatience is how long the output of a killed program may stay open, unless
// c.WaitDelay says otherwise.
const treePatience = 10 * time.Second

// StartTree starts c, a program that starts others and may leave them behind, such as a
// browser. kill kills all these processes and waits for c, unless the test has waited for
// c already; the test fails if a process survives. The test's cleanup calls kill.
// Processes in a session of their own are found by their parents or by their initial
// environment.
func StartTree(t testing.TB, c *exec.Cmd) (kill func()) {
	t.Helper()
	tag := proc.Tag("test-" + rand.Text())
	c.Env = append(proc.WithoutTag(c.Environ()), tag)
	if c.WaitDelay == 0 {
		c.WaitDelay = treePatience
	}
	proc.InSession(c)
	must.Do(t, c.Start())
	leader, err := proc.Lookup(c.Process.Pid) // the process exists, perhaps as a zombie, until somebody waits for it
	if err != nil {
		t.Errorf("look up %v: %v", c.Args, err)
	}
	kill = sync.OnceFunc(func() {
		reaped := c.ProcessState != nil
		if err := (proc.Tree{Leader: leader.ID, Reaped: reaped, Tag: tag}).Kill(context.Background(), 0); err != nil {
			t.Errorf("end %v and the processes that it started: %v", c.Args, err)
		}
		if !reaped {
			_ = c.Wait() // it was killed
		}
	})
	t.Cleanup(kill)
	return kill
}
