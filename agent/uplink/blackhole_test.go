package uplink_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"tether/agent/uplink"
	"tether/host"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// Everything that either end sends is swallowed, in every connection, and none is ever
// closed. Both ends notice by themselves and close their connections; when the network is
// back, the link continues where it was.
func TestABlackHoleBetweenSockets(t *testing.T) {
	testkit.Leaks(t)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	var opened, ended atomic.Int64 // connections of the laptop, as the host sees it
	at := host.Options{SilenceTime: time.Second, HandshakeTime: 20 * time.Second, Audit: func(ev rights.AuditEvent) {
		switch {
		case ev.Client != "laptop":
		case ev.Type == rights.AuditClient:
			opened.Add(1)
		case ev.Type == rights.AuditEnded:
			ended.Add(1)
		}
	}}
	const whole = 50 << 10 // bytes that pass before
	var dark atomic.Bool   // nothing passes from the beginning
	quick := func(o *uplink.Options) { o.Heartbeat, o.DialTimeout = 500*time.Millisecond, time.Second }
	r := newRoadTo(t, at, 1, false, quick, func(int) testkit.Fault {
		if dark.Load() {
			return testkit.Fault{Kind: testkit.BlackHole}
		}
		return testkit.Fault{Kind: testkit.BlackHole, After: whole}
	})
	r.lend()
	r.watch(r.announced)
	dark.Store(true)
	if err := r.write(ctx, 2*whole); err != nil { // which waits for no observer: nothing more may reach one
		t.Fatal(err)
	}
	testkit.Eventually(t, 2*time.Minute, "both ends notice", func() bool {
		return r.proxy.Faults() > 0 && opened.Load() > 0 && opened.Load() == ended.Load() && r.link.Status().State != uplink.StateOnline
	})
	r.calm.Store(true)
	must.Do(t, r.await(ctx, func() bool { return r.seen.Offset() == r.flood.Offset() }))
	r.child.End(3)
	must.Do(t, r.await(ctx, func() bool { return len(r.exits) == 1 }))
}
