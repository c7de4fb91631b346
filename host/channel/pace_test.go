package channel_test

import (
	"testing"
	"testing/synctest"
	"time"

	"tether/host/channel"
)

// A source that can wait is held by the slowest taker, whether that is a subscription or
// a node, and not by one that has held it for too long.
func TestSourcesWaitForTakers(t *testing.T) {
	for _, test := range []struct {
		name  string
		holds bool
		held  time.Duration // by one of two takers that takes nothing
	}{
		{"who can wait", true, limits.HoldTime},
		{"who cannot", false, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig()
				c := r.NewChannel("a")
				c.Holds = test.holds
				r.peer().subscribe(c)
				fast := r.peer()
				fast.subscribe(c)
				r.add(c, 300, nil)
				fast.next()
				began := time.Now()
				r.mu.Lock()
				wait := c.Pace()
				r.mu.Unlock()
				if wait != nil {
					<-wait
				}
				if took := time.Since(began); took < test.held || took > test.held+time.Second/2 {
					t.Errorf("held for %v, want %v", took, test.held)
				}
			})
		})
	}
}

// A node holds a source while it asks, and no longer.
func TestANodeHoldsWhileItAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		c := r.NewChannel("a")
		c.Holds = true
		f := c.NewFeed()
		f.Ask(0)
		for range 3 {
			r.add(c, 300, nil)
		}
		r.mu.Lock()
		wait := c.Pace()
		r.mu.Unlock()
		time.Sleep(800 * time.Millisecond)
		r.mu.Lock()
		f.Ask(1) // it is still far behind
		r.mu.Unlock()
		time.Sleep(800 * time.Millisecond)
		select {
		case <-wait:
			t.Error("the source goes on while the node asks")
		default:
		}
		<-wait // the node does not ask any more
		r.mu.Lock()
		defer r.mu.Unlock()
		f.Ask(1)
		if wait = c.Pace(); wait == nil {
			t.Fatal("the node holds nothing")
		}
		f.Ask(3)
		<-wait
	})
}

// Short output is written by the goroutine that appends it, for a few observers for whom
// nothing else waits; its acknowledgement comes later, that of long output at once.
func TestWakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		c, other := r.NewChannel("a"), r.NewChannel("b")
		source := r.peer()
		c.Bind(source.out)
		c.Owner = source.out.Party
		idle, full, busy, waits := r.peer(), r.peer(), r.peer(), r.peer()
		for _, p := range []*peer{idle, full, busy, waits} {
			p.subscribe(c)
		}
		full.takes, busy.out.Busy = false, true
		waits.subscribe(other)
		r.add(other, 1, nil)
		waits.woken = 0
		var w channel.Wakes
		r.mu.Lock()
		w.Begin(r.Order, 1)
		r.add(c, 1, &w)
		c.Ack(1, &w)
		if idle.woken+full.woken > 0 || busy.woken != 1 || waits.woken != 1 {
			t.Errorf("woken under the lock: %d %d, %d %d", idle.woken, full.woken, busy.woken, waits.woken)
		}
		r.mu.Unlock()
		w.Deliver()
		if idle.direct != 1 || full.woken != 1 || busy.direct+waits.direct > 0 {
			t.Errorf("sent %d directly, woken %d", idle.direct, full.woken)
		}
		r.mu.Lock()
		if source.out.Ack() != nil {
			t.Error("a key is acknowledged at once")
		}
		r.mu.Unlock()
		time.Sleep(time.Second)
		r.mu.Lock()
		defer r.mu.Unlock()
		if source.woken != 1 || source.out.Ack() == nil {
			t.Error("a key is not acknowledged")
		}
		if c.Ack(2000, nil); source.out.Ack() == nil {
			t.Error("long output is not acknowledged at once")
		}
	})
}
