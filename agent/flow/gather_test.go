package flow_test

import (
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/flow"
)

// Little output goes at once; more gathers until it is acknowledged and has paused.
func TestGather(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const frame = 64 << 10
		g := flow.Gather{Little: 1 << 10}
		least := func(inflight, want int64, pause time.Duration) {
			t.Helper()
			if n, p := g.Least(inflight, frame); n != want || p != pause {
				t.Errorf("with %d in transit: %d bytes, or what there is after %v", inflight, n, p)
			}
		}
		least(0, 1, 0)
		least(1<<10, 1, 0)
		least(1<<10+1, frame, 0)
		for range 3 {
			g.Sent(1<<9, time.Now())
			time.Sleep(flow.Pause / 2)
		}
		least(1<<10+1, frame, 0)
		least(0, frame, flow.Pause/2)
		time.Sleep(flow.Pause / 2)
		least(0, 1, 0)
		g.Sent(1, time.Now()) // after a pause: another burst
		least(0, 1, 0)
	})
}
