package flow_test

import (
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/flow"
)

// A flood makes room for input at other terminals, for a while, and never for input at
// its own.
func TestTypingElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var typing flow.Typing
		want := func(when string, a, b, c bool) {
			t.Helper()
			for name, want := range map[string]bool{"a": a, "b": b, "c": c} {
				if got := typing.Elsewhere(name); got != want {
					t.Errorf("%s: Elsewhere(%s) = %v", when, name, got)
				}
			}
		}
		want("nobody has typed", false, false, false)
		typing.Input("a")
		typing.Input("a")
		want("typed at a", false, true, true)
		time.Sleep(flow.Quiet / 2)
		typing.Input("b")
		want("typed at a, then at b", true, true, true)
		time.Sleep(flow.Quiet / 2)
		want("typed at a a while ago", true, false, true)
		time.Sleep(flow.Quiet / 2)
		want("typed at both a while ago", false, false, false)
	})
}
