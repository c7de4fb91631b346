package uplink_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/redact"
	"tether/agent/term"
	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/internal/xterm"
)

// shownOf is what somebody shows of a terminal's state.
func shownOf(s ahp.TerminalState) xterm.Stream {
	if at := s.Meta.Screen; at != nil {
		return xterm.Joined(at.Cols, at.Rows, at.Data, s.Text(), at.After, at.Sizes)
	}
	return xterm.Joined(s.Cols, s.Rows, "", s.Text(), 0, nil)
}

// joined is the observers' display at some moments, and the terminal's output by then.
type joined struct {
	late, whole []xterm.Stream
}

func (j *joined) add(late, whole xterm.Stream) {
	j.late, j.whole = append(j.late, late), append(j.whole, whole)
}

// compare has xterm.js show what observers see, and what somebody sees who was there from
// the start. known is for how many it did not give up.
func (j *joined) compare(t *testing.T, round int) (known int) {
	t.Helper()
	n := len(j.late)
	shown := xterm.Show(t, xterm.Widths, append(j.late, j.whole...))
	for i, got := range shown[:n] {
		want := shown[n+i]
		if got == nil || want == nil {
			continue
		}
		known++
		if d := xterm.Differ(got, want); d != "" {
			t.Fatalf("round %d: observer %d of %d\n%s", round, i+1, n, d)
		}
	}
	return known
}

// follower is an observer that stays.
type follower struct {
	mu    sync.Mutex
	uri   string
	shows xterm.Stream
}

func (f *follower) see(v ahp.EnvelopeView) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if v.Channel != f.uri || v.Rejected {
		return
	}
	a, _ := ahp.DecodeAction(v.Action)
	switch a := a.(type) {
	case ahp.TerminalData:
		if f.shows.Parts = append(f.shows.Parts, xterm.Part{Data: []byte(a.Data)}); a.Screen != nil {
			f.shows = shownOf(ahp.TerminalState{Meta: ahp.TerminalMeta{Screen: a.Screen}})
		}
	case ahp.TerminalResized:
		f.shows.Parts = append(f.shows.Parts, xterm.Part{Cols: int(a.Cols), Rows: int(a.Rows)})
	}
}

// follow joins the one terminal and stays.
func (w *world) follow() *follower {
	w.t.Helper()
	f := &follower{}
	for f.uri = range w.observe() {
	}
	ch := must.Get(w.dial())(w.t)
	c := must.Get(client.ConnectChannel(w.ctx, ch, client.Options{ClientID: "follower", OnEnvelope: f.see}))(w.t)
	w.t.Cleanup(c.Close)
	f.mu.Lock()
	defer f.mu.Unlock()
	r := must.Get(c.Subscribe(w.ctx, f.uri))(w.t)
	var s ahp.TerminalState
	must.Do(w.t, json.Unmarshal(r.Snapshot.State, &s))
	f.shows = shownOf(s)
	return f
}

// An observer at a host, who joins at any moment of what a program prints and gives it as
// sizes, sees what xterm.js shows that was there from the start, whatever the daemon and
// the host have dropped, and also at a host that has forgotten everything.
func TestObserversSeeTheScreenThroughAHost(t *testing.T) {
	known, all := 0, 0
	for round := range testkit.Rounds(t, testkit.Load(8, 3), 1000) {
		rng := rand.New(rand.NewPCG(uint64(round), 22))
		s := xterm.Long(rng, 20<<10+rng.IntN(180<<10), round%2 == 1, xterm.Wider)
		var j joined
		synctest.Test(t, func(t *testing.T) { throughHost(t, rng, s, &j) })
		known += j.compare(t, round)
		all += len(j.late)
	}
	if known < all*3/4 {
		t.Errorf("xterm.js showed %d of %d", known, all)
	}
	t.Logf("xterm.js showed %d of %d", known, all)
}

func throughHost(t *testing.T, rng *rand.Rand, s xterm.Stream, j *joined) {
	options := host.Options{Scrollback: 16 << 10, LogBytes: 32 << 10}
	rules := must.Get(redact.Compile(redact.Options{}))(t)
	w := newWorldOf(t, options, term.Options{Outward: rules}, nil)
	w.online()
	h, child := w.spawn(term.Spec{Size: term.Size{Cols: uint16(s.Cols), Rows: uint16(s.Rows)}})
	var stays *follower
	forgets := rng.IntN(len(s.Parts) + 1) // with this part the host loses all, or its connection
	var waits strings.Builder
	settle := func() {
		if waits.Len() > 0 {
			child.Print(waits.String())
			waits.Reset()
		}
		time.Sleep(time.Minute) // also until the link is there again
		synctest.Wait()
	}
	for i, p := range s.Parts {
		if p.Data == nil {
			settle()
			must.Do(t, h.Resize(term.Size{Cols: uint16(p.Cols), Rows: uint16(p.Rows)}))
		}
		waits.Write(p.Data)
		last := i == len(s.Parts)-1
		if !last && i != forgets && rng.IntN(8) > 0 {
			continue
		}
		settle()
		if i == forgets {
			if stays = nil; rng.IntN(3) > 0 {
				w.restartHost(options)
			}
			w.cut(false)
			w.online()
			settle()
		}
		whole := xterm.Stream{Cols: s.Cols, Rows: s.Rows, Parts: s.Parts[:i+1]}
		now := w.only()
		if now.Meta.Screen != nil && now.Meta.Screen.Truncated {
			t.Errorf("part %d: the screen is said to be truncated", i)
		}
		j.add(shownOf(now), whole)
		if stays == nil {
			stays = w.follow()
		}
		if last {
			locked(&stays.mu, func() { j.add(stays.shows, whole) })
		}
	}
}
