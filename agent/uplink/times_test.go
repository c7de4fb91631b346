package uplink_test

import (
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/term"
	"tether/ahp"
)

// The host hears when a terminal was started and when it has ended, not only that it is told so now: after a restart of the host, or an
// hour without a network, arrival says nothing.
func TestTimesAreTheOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient, marker: ahp.ClientTerminals{Version: 1}.Meta()} // without resume all is announced anew
		w := fakeWorld(t, f, nil)
		started := time.Now()
		_, child := w.spawn(term.Spec{})
		synctest.Wait()
		time.Sleep(time.Hour)
		w.cut(true)
		ended := time.Now()
		child.End(3)
		time.Sleep(time.Hour)
		w.cut(false)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if len(f.born) < 2 {
			t.Fatalf("it was announced %d times", len(f.born))
		}
		for _, said := range f.born {
			if !said.Equal(started) {
				t.Errorf("announced as started at %s, it was at %s", said, started)
			}
		}
		if !f.ended.Equal(ended) {
			t.Errorf("told that it ended at %s, it was at %s", f.ended, ended)
		}
	})
}
