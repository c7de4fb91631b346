package tui

import (
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/localapi"
	"tether/internal/testkit/check"
	"tether/vocab"
)

// Ports are looked for now and then, and shown all the time.
func TestUIPorts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p ports
		looks := 0
		for range int(time.Minute / refreshEvery) {
			if p.due() {
				looks++
			}
			time.Sleep(refreshEvery)
		}
		if want := int(time.Minute / portsEvery); looks != want {
			t.Errorf("%d looks in a minute, want %d", looks, want)
		}
		web := []localapi.Listening{{Port: 3000}}
		p.note([]localapi.Terminal{{ID: "a", Listening: web}, {ID: "b", Listening: web}})
		list := []localapi.Terminal{{ID: "a"}, {ID: "b", Exit: &vocab.Exit{}}, {ID: "new"}}
		p.fill(list)
		want := []localapi.Terminal{{ID: "a", Listening: web}, {ID: "b", Exit: &vocab.Exit{}}, {ID: "new"}}
		check.Equal(t, "", want, list)
	})
}
