package uplink_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/term"
	"tether/agent/uplink"
	"tether/vocab"
)

// The host is told in which program an adopted pane is, and of what kind it is; not which
// pane, whose name may have the path of a socket.
func TestAdoptedIsAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &capture{}
		w := captured(t, c, term.Options{}, func(*uplink.Options) {})
		w.online()
		began := time.Now()
		w.spawn(term.Spec{Adopted: &vocab.Adopted{From: "tmux:/run/secret/socket:%3", Program: "tmux"}})
		time.Sleep(5 * time.Second)
		frames := strings.Join(c.since(began), "\n")
		if !strings.Contains(frames, `"tether/adopted":"tmux"`) || !strings.Contains(frames, `"tether/repeatedPicture":true`) || strings.Contains(frames, "socket") {
			t.Errorf("the host is told %s", frames)
		}
	})
}
