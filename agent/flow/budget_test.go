package flow_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"tether/agent/flow"
)

// A caller that waits at most Left each time waits at most Hold in any Window.
func TestBudgetIsABoundOfAnyWindow(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var b flow.Budget
		now := time.Unix(0, 0)
		type wait struct{ from, to time.Time }
		var waits []wait
		for range rapid.IntRange(1, 50).Draw(r, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3000).Draw(r, "pause in ms")) * time.Millisecond)
			left := b.Left(now)
			if left <= 0 {
				continue
			}
			w := wait{now, now.Add(min(left, time.Duration(rapid.IntRange(1, 300).Draw(r, "wait in ms"))*time.Millisecond))}
			now = w.to
			b.Spend(now, w.to.Sub(w.from))
			waits = append(waits, w)
			sum := time.Duration(0)
			for _, o := range waits {
				if begin := now.Add(-flow.Window); o.to.After(begin) {
					if o.from.Before(begin) {
						o.from = begin
					}
					sum += o.to.Sub(o.from)
				}
			}
			if sum > flow.Hold {
				r.Fatalf("%v of the last %v were waited", sum, flow.Window)
			}
		}
	})
}

// A used budget recovers.
func TestBudgetRecovers(t *testing.T) {
	var b flow.Budget
	now := time.Unix(0, 0)
	b.Spend(now, flow.Hold)
	if left := b.Left(now); left != 0 {
		t.Errorf("%v are left of a budget that was used", left)
	}
	if left := b.Left(now.Add(flow.Window + flow.Hold)); left != flow.Hold {
		t.Errorf("%v are left after a window without a wait", left)
	}
}
