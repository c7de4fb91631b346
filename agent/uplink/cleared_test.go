package uplink_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/term"
	"tether/host"
	"tether/internal/testkit/must"
)

// A host clears its copy of a terminal whose past is forgotten, also one that is out of
// reach then. Who looks there sees only what comes after.
func TestAForgottenPastIsClearedAtTheHost(t *testing.T) {
	for name, away := range map[string]bool{"linked": false, "away": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, host.Options{Grace: time.Minute}, nil)
				h, child := w.spawn(term.Spec{})
				prints(child, "before\r\n")
				pass(time.Second)
				if got := text(w.only()); got != "before\r\n" {
					t.Fatalf("the host has %q", got)
				}
				if away {
					w.cut(true)
				}
				must.Get(h.ForgetPast(t.Context(), math.MaxInt64))(t)
				prints(child, "after\r\n")
				if away {
					w.up()
				}
				pass(time.Second)
				if got := text(w.only()); got != "after\r\n" {
					t.Errorf("the host has %q", got)
				}
			})
		})
	}
}
