package uplink_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp/client"
	"tether/internal/testkit/must"
)

// A connection's properties are not shown without one, and the time since the link is
// down does not restart with each attempt.
func TestStatusOverALinksLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		w, network := newWorldOnNetwork(t, nil)
		w.until(uplink.StateOnline, time.Minute)
		_, child := w.spawn(term.Spec{})
		child.Print("12345")
		time.Sleep(time.Second) // few bytes are acknowledged a moment later
		s := w.link.Status()
		if s.Since != began || !s.DownSince.IsZero() || !s.NextRetry.IsZero() || s.Err != nil || s.Version == "" || s.Server == "" || !s.Resume || s.Unacked != 0 {
			t.Errorf("online: %+v", s)
		}

		time.Sleep(time.Hour)
		network.cut(true)
		lost := time.Now()
		child.Print("6789\xff")
		pass(10 * time.Minute)
		s = w.link.Status()
		if s.State != uplink.StateWaiting || s.DownSince != lost || s.Since == lost || !errors.Is(s.Err, client.ErrUnreachable) {
			t.Errorf("down: %+v, want it waiting, down since %v and unreachable", s, lost)
		}
		if left := time.Until(s.NextRetry); left <= 0 || left > 30*time.Second+time.Millisecond {
			t.Errorf("the next attempt is in %v", left)
		}
		if s.Version != "" || s.Server != "" || s.Resume {
			t.Errorf("down, it still shows the connection: %+v", s)
		}
		if want := int64(len("6789\uFFFD")); s.Unacked != want || len(s.Terminals) != 1 || s.Terminals[0].Unacked != want {
			t.Errorf("down, %d bytes wait; want %d: %+v", s.Unacked, want, s.Terminals)
		}

		network.turn(false, true)
		for s = w.link.Status(); s.State != uplink.StateConnecting; s = w.link.Status() {
			time.Sleep(100 * time.Millisecond)
		}
		if s.DownSince != lost || !errors.Is(s.Err, client.ErrUnreachable) || !s.NextRetry.IsZero() {
			t.Errorf("during an attempt: %+v, want the last failure", s)
		}

		network.turn(false, false)
		w.link.Moved()
		w.until(uplink.StateOnline, 10*time.Second)
		time.Sleep(time.Second)
		if s = w.link.Status(); s.Err != nil || !s.DownSince.IsZero() || s.Version == "" || s.Unacked != 0 || s.Gaps != 0 {
			t.Errorf("online again: %+v", s)
		}
		if !w.shows("123456789\uFFFD") {
			t.Error("the host does not have it all")
		}
	})
}

// Gaps are counted where the person looks, also when the terminal has gone.
func TestGapsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, network := newWorldOnNetwork(t, nil)
		w.until(uplink.StateOnline, time.Minute)
		h, child := w.spawn(term.Spec{})
		bytes := int64(0)
		for n := 1; n <= 2; n++ {
			network.cut(true)
			synctest.Wait()
			child.Print(strings.Repeat("0123456789abcde\n", 16<<10)) // four logs full
			network.turn(false, false)
			w.until(uplink.StateOnline, time.Minute)
			synctest.Wait()
			s := w.link.Status()
			if s.Gaps != n || s.GapBytes < bytes+128<<10 {
				t.Errorf("after loss %d: %d gaps of %d bytes", n, s.Gaps, s.GapBytes)
			}
			bytes = s.GapBytes
		}
		must.Do(t, h.Unlend("lab"))
		synctest.Wait()
		if s := w.link.Status(); len(s.Terminals) != 0 || s.Gaps != 2 || s.GapBytes != bytes {
			t.Errorf("without the terminal: %+v", s)
		}
	})
}
