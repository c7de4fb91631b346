package web_test

import (
	"testing"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit/must"
)

// The list and the terminal's head show that a program waits for typed input, as soon as
// and as long as it does.
func TestPageShowsWhoAwaits(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	uri := s.lend(s.machine, "laptop", "release")
	s.act(uri, print("Publish 1.2.0? [y/N] "))
	b.do("open", nil, nil)
	s.login(b)
	says := func(state string) {
		t.Helper()
		must.Do(t, s.machine.Peer().SendRaw(t.Context(), ahp.AppendState(nil, ahp.NewState(uri, state, time.Now()))))
	}
	const inList = "document.querySelector('nav a .state').textContent"
	b.wait(inList + " === 'running'")
	s.choose(b, "release")
	says(ahp.InputAwaits)
	b.wait(inList + " === 'awaiting input' && document.querySelector('#state').textContent === 'awaiting input'")
	if kind := b.text("document.querySelector('nav a .state').dataset.state"); kind != "awaits" {
		t.Errorf("it is drawn as %q", kind)
	}
	b.shot("awaiting-input")
	says(ahp.InputSecret)
	b.wait(inList + " === 'awaiting secret'")
	says(ahp.InputRunning)
	b.wait(inList + " === 'running' && document.querySelector('#state').textContent === 'running'")
	b.clean(s.server.URL)
}
