package host_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/host"
)

// A little text is acknowledged after its observers have it, once for all that comes
// meanwhile; much is at once.
func TestAcknowledgementsOfLittleWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		owner.create(uri)
		v := connect(t, h, "desk", viewOptions{subs: []string{uri}})
		acked := func() int64 {
			synctest.Wait()
			owner.mu.Lock()
			defer owner.mu.Unlock()
			return owner.acks[uri]
		}
		sent := int64(0)
		say := func(text string) {
			owner.output(uri, text, sent)
			sent += int64(len(text))
		}
		for range 3 {
			before := acked()
			say("k")
			say("ey")
			if got := acked(); got != before || !strings.HasSuffix(v.textOf(uri), "key") {
				t.Errorf("%d of %d bytes are acknowledged before time passes, and the observer has %q", got, sent, v.textOf(uri))
			}
			time.Sleep(20 * time.Millisecond)
			if got := acked(); got != sent {
				t.Errorf("20 ms later %d of %d bytes are acknowledged", got, sent)
			}
		}
		began := time.Now()
		say(strings.Repeat("x", 2<<10))
		if got := acked(); got != sent || !time.Now().Equal(began) {
			t.Errorf("of much text %d of %d bytes are acknowledged at once", got, sent)
		}
	})
}

// An acknowledgement held back for an observer that is behind is not sent with an earlier
// one.
func TestAnAcknowledgementThatIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{LogBytes: 64 << 10})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		owner.create(uri)
		_, g := slowViewer(t, h, "slow", uri) // which may be a moment slow and is waited for
		sent := int64(0)
		say := func(text string) {
			owner.output(uri, text, sent)
			sent += int64(len(text))
		}
		for range 40 { // until the observer is stuck, which is not far behind then
			say("x")
		}
		time.Sleep(20 * time.Millisecond)
		say("key")
		say(strings.Repeat("y", 32<<10))
		time.Sleep(20 * time.Millisecond)
		owner.mu.Lock()
		early := owner.acks[uri] == sent
		owner.mu.Unlock()
		if early {
			t.Error("all of it is acknowledged while the observer is far behind")
		}
		time.Sleep(time.Second)
		owner.await("the acknowledgement", func() bool { return owner.acks[uri] == sent })
		g.openUp()
	})
}
