package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/agent"
	"tether/agent/localapi"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
	"tether/platform/secret"
)

// A daemon that starts waits for one that ends, or for an examination, longer than for
// another program.
func TestWaitsForTheLockOfADaemonThatEnds(t *testing.T) {
	d := home(t)
	must.Do(t, secret.Dir(d.Runtime))
	lock := must.Get(ipc.Lock(filepath.Join(d.Runtime, localapi.LockName)))(t)
	time.AfterFunc(1500*time.Millisecond, func() { lock.Close() })
	start(t, agent.Config{Dirs: d}).end()
}

// tether stop, too, waits for the lock. If it gives up, it is told that nobody listens.
func TestEndingTerminalsWaitsForTheLock(t *testing.T) {
	d := home(t)
	must.Do(t, secret.Dir(filepath.Join(d.Runtime, "h")))
	deaf := must.Get(ipc.Listen(filepath.Join(d.Runtime, "h", "pty-deaf.sock")))(t) // nobody accepts
	defer deaf.Close()
	lock := must.Get(ipc.Lock(filepath.Join(d.Runtime, localapi.LockName)))(t)
	end := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := agent.EndLeftRunning(ctx, d)
		return err
	}
	if locked, ok := end().(*agent.LockError); !ok || locked.Pid != os.Getpid() {
		t.Errorf("the error is not that this process has the lock: %v", locked)
	}
	time.AfterFunc(50*time.Millisecond, func() { lock.Close() })
	if err := end(); err == nil || !strings.Contains(err.Error(), "pty-deaf") {
		t.Errorf("the error is %v, and not about the terminal", err)
	}
}

// Concurrent examinations of the lock, as by tether doctor, do not see each other.
func TestLooksAtTheLockTogether(t *testing.T) {
	d := home(t)
	must.Do(t, secret.Dir(d.Runtime))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 50 {
				if held := agent.LockHeld(t.Context(), d); held != nil {
					t.Errorf("nobody holds the lock, but: %v", held)
					return
				}
				if pid := agent.Running(d); pid != 0 {
					t.Errorf("no daemon runs, but process %d of %d", pid, os.Getpid())
					return
				}
			}
		})
	}
	all.Wait()
}
