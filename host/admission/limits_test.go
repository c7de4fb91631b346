package admission

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestGuessesComeBackWithTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Options{})
		for range 10 {
			g.Wrong("192.0.2.1:1")
		}
		blocked := func(remote string) bool { return g.Guessing(remote) != nil }
		if !blocked("192.0.2.1:2") || blocked("192.0.2.2:1") {
			t.Error("the place that guessed should be blocked, and no other")
		}
		time.Sleep(3 * time.Second)
		if blocked("192.0.2.1:3") {
			t.Error("one guess should have come back")
		}
		g.Wrong("192.0.2.1:3")
		if why := g.Guessing("192.0.2.1:3"); why == nil || why.Quiet {
			t.Errorf("refused after that: %+v, want so, and that it is logged", why)
		}
		if why := g.Guessing("192.0.2.1:3"); why == nil || !why.Quiet {
			t.Errorf("refused again: %+v, want so, and that it is not logged", why)
		}
		for range 10 {
			g.Wrong("[2001:db8::1]:1")
		}
		if !blocked("[2001:db8::2]:1") || blocked("[2001:db8:0:1::1]:1") {
			t.Error("an IPv6 place should be the /64 network")
		}
		for i := range 20_000 {
			g.Wrong(fmt.Sprintf("10.%d.%d.%d:1", i>>16, i>>8&255, i&255))
		}
		if n := g.tokens.Len(); n > 4096 {
			t.Errorf("%d places are remembered", n)
		}
	})
}
