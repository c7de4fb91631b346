package local_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"tether/agent/local"
	"tether/agent/term"
)

// A request that was admitted just before the server drained is either waited for or refused: a WaitGroup alone covers only requests
// counted before the wait.
func TestDrainWaitsForEveryRequest(t *testing.T) {
	pool := term.NewPool(term.Options{})
	for range 50 {
		s := local.NewServer(local.Options{Access: pool.As})
		var inside atomic.Int64
		var clients sync.WaitGroup
		for range 4 {
			clients.Go(func() {
				for s.Enter() == nil {
					inside.Add(1)
					runtime.Gosched()
					inside.Add(-1)
					s.Leave()
				}
			})
		}
		s.Drain()
		if n := inside.Load(); n != 0 {
			t.Errorf("Drain has returned, and %d are there", n)
		}
		clients.Wait()
	}
}
