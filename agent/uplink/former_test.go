package uplink_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// sole is the one terminal at the host, with its entry in the catalogue.
func (w *world) sole() (info ahp.TerminalInfo, state ahp.TerminalState) {
	w.t.Helper()
	ch := must.Get(w.dial())(w.t)
	c := must.Get(client.ConnectChannel(w.ctx, ch, client.Options{ClientID: "looker", Subscriptions: []string{ahp.RootURI}}))(w.t)
	defer c.Close()
	var root ahp.RootState
	if err := json.Unmarshal(c.Result().Snapshots[0].State, &root); err != nil || len(root.Terminals) != 1 {
		w.t.Fatalf("the host has %+v, %v; want one terminal", root.Terminals, err)
	}
	info = root.Terminals[0]
	r, err := c.Subscribe(w.ctx, info.Resource)
	if err == nil {
		err = json.Unmarshal(r.Snapshot.State, &state)
	}
	must.Do(w.t, err)
	return info, state
}

// up lets the link reach the host again, and everything arrive: the last frame waits a
// moment for more.
func (w *world) up() {
	w.t.Helper()
	w.mend()
	w.link.Nudge() // the back-off may be longer than a grace time
	w.online()
	pass(time.Second)
}

// A terminal's URI after a reconnection: it is the same while nobody was told of an end,
// and otherwise another one that names the former.
func TestTheURIAfterALoss(t *testing.T) {
	grace := host.Options{Grace: 30 * time.Second}
	for _, test := range []struct {
		name   string
		while  func(w *world) // the link is down
		former bool
	}{
		{"within the grace time", func(*world) { pass(20 * time.Second) }, false},
		{"after it", func(*world) { pass(40 * time.Second) }, true},
		{"after all memory of the client", func(*world) { pass(time.Hour) }, true},
		{"the host has restarted", func(w *world) { w.restartHost(grace); pass(5 * time.Second) }, false},
		{"the host has restarted long ago", func(w *world) { w.restartHost(grace); pass(time.Minute) }, true},
		{"it was disposed of meanwhile", func(w *world) {
			w.mend()
			w.dispose()
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, grace, nil)
				_, child := w.spawn(term.Spec{Nonce: "n0"})
				prints(child, "\x1b]633;E;make;n0\a\x1b]633;C;n0\abefore ")
				first, _ := w.sole()
				w.cut(true)
				child.Print("during ")
				test.while(w)
				w.up()
				prints(child, "after\x1b]633;D;0;n0\a")
				info, state := w.sole()
				want := ""
				if test.former {
					want = first.Resource
				}
				if info.Meta.Former != want || state.Meta.Former != want || (info.Resource == first.Resource) == test.former {
					t.Errorf("it was %s and is %s, formerly %q", first.Resource, info.Resource, info.Meta.Former)
				}
				if got := text(state); got != "before during after" || len(state.Content) != 1 || !state.Content[0].IsComplete {
					t.Errorf("text %q in %+v", got, state.Content)
				}
				w.cut(true) // from here on as before
				w.up()
				if again, state := w.sole(); again.Resource != info.Resource || again.Meta.Former != want || text(state) != "before during after" {
					t.Errorf("after another cut it is %s, formerly %q, with %q", again.Resource, again.Meta.Former, text(state))
				}
			})
		})
	}
}

// forget makes a host follow the proposal to the letter when its connection to the owner
// ends.
func (f *fakeHost) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.created, f.former = nil, nil
}

// Hosts have two codes for a channel that there is not.
func TestTheBareProposalEndsWithTheConnection(t *testing.T) {
	for _, code := range []jsonrpc.Code{ahp.CodeNotFound, ahp.CodeSessionNotFound} {
		t.Run(fmt.Sprint(int64(code)), func(t *testing.T) { endsWithTheConnection(t, code) })
	}
}

func endsWithTheConnection(t *testing.T, code jsonrpc.Code) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient, gone: code}
		w := fakeWorld(t, f, literal)
		_, child := w.spawn(term.Spec{})
		for round := range 3 {
			prints(child, fmt.Sprint(round, " "))
			last := f.uri(t)
			f.forget()
			w.cut(false)
			time.Sleep(40 * time.Second) // longer than any back-off
			if f.uri(t) == last || f.former[0] != last || f.cleared > 0 {
				t.Errorf("round %d: terminals %v, formerly %v; want another one than %s that names it", round, f.created, f.former, last)
			}
		}
		child.End(7)
		synctest.Wait()
		if got, code := f.text[f.uri(t)], f.exited[f.uri(t)]; got != "0 1 2 " || code == nil || *code != 7 {
			t.Errorf("text %q, exit %v; want everything once, and 7", got, code)
		}
	})
}

// The daemon that comes after finds its terminals at the host as a link finds them after
// a cut.
func TestAnotherDaemonGoesOnWhereTheHostIs(t *testing.T) {
	for away, former := range map[time.Duration]bool{5 * time.Second: false, time.Minute: true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, host.Options{Grace: 30 * time.Second}, nil)
			_, child := w.spawn(term.Spec{})
			prints(child, "before ")
			first, _ := w.sole()
			w.cut(true) // the first link stays down

			time.Sleep(away)
			second := uplink.New(uplink.Options{Name: "lab", Endpoint: client.Endpoint{URL: "ws://lab"}, ClientID: "laptop",
				Terminals: w.pool.As(term.Host("lab")), Connect: func(ctx context.Context, _ client.Endpoint, o client.Options) (*client.Conn, error) {
					w.mu.Lock()
					down := w.down
					w.down = false
					w.mu.Unlock()
					ch, err := w.dial()
					locked(&w.mu, func() { w.down = down })
					if err != nil {
						return nil, err
					}
					return client.ConnectChannel(ctx, ch, o)
				}})
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { second.Run(ctx) })
			child.Print("after")
			pass(time.Second)
			w.mend() // to look; the first link waits for its back-off
			info, state := w.sole()
			if (info.Meta.Former == first.Resource) != former || (info.Resource == first.Resource) == former || text(state) != "before after" {
				t.Errorf("away for %v: it was %s and is %s, formerly %q, with %q", away, first.Resource, info.Resource, info.Meta.Former, text(state))
			}
			cancel()
			wg.Wait()
		})
	}
}

// Output beyond the bound of the log, printed while nobody could take it, is missing to
// the byte, in one place, and everything else is there.
func TestAGapHasItsSize(t *testing.T) {
	for _, forgets := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, host.Options{Grace: time.Hour}, nil)
			_, child := w.spawn(term.Spec{})
			var flood testkit.Flood
			lost := int64(0)
			for range 3 {
				for n := flood.Offset() + 30<<10; flood.Offset() < n; {
					child.Print(flood.Next(2000))
				}
				synctest.Wait()
				w.cut(true)
				for n := flood.Offset() + 150<<10; flood.Offset() < n; { // into a log of 64 KiB
					child.Print(flood.Next(2000))
				}
				if forgets {
					w.restartHost(host.Options{Grace: time.Hour})
				}
				w.up()
				lost = w.link.Status().Terminals[0].Lost
			}
			state := w.only()
			gaps, end, err := testkit.CheckFlood(text(state))
			sum := int64(0)
			for _, n := range gaps {
				sum += n
			}
			if want := map[bool]int{false: 3, true: 1}[forgets]; err != nil || len(gaps) != want || state.Meta.Missing != sum || sum < int64(want)*60<<10 {
				t.Errorf("forgets=%v: gaps %v, field %d, %v; want %d", forgets, gaps, state.Meta.Missing, err, want)
			}
			if !forgets && sum != lost {
				t.Errorf("%d bytes are missing at the host, status says %d", sum, lost)
			}
			if end != flood.Offset() {
				t.Errorf("the host has the flood up to %d of %d", end, flood.Offset())
			}
		})
	}
}
