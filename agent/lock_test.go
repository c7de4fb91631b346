package agent_test

import (
	"os"
	"sync"
	"testing"

	"tether/agent"
	"tether/internal/testkit/must"
	"tether/platform/secret"
)

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
