package uplink_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
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
	"tether/jsonrpc"
)

// newWorldOnNetwork is a world whose link has a network that tests control.
func newWorldOnNetwork(t *testing.T, change func(*uplink.Options)) (*world, *network) {
	network := newNetwork()
	w := newWorld(t, host.Options{}, func(o *uplink.Options) {
		network.in(o)
		if change != nil {
			change(o)
		}
	})
	network.over(w.dial)
	return w, network
}

// until waits in fake time for a state of the link and returns how long that took.
func (w *world) until(state uplink.State, most time.Duration) time.Duration {
	w.t.Helper()
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		synctest.Wait()
		if w.link.Status().State == state {
			return time.Since(began)
		}
		if time.Since(began) > most {
			w.t.Fatalf("after %v the link is %+v, want %s", most, w.link.Status(), state)
		}
	}
}

// shows reports whether the host has one terminal, with this text.
func (w *world) shows(want string) bool {
	w.t.Helper()
	states := w.observe()
	for _, s := range states {
		return len(states) == 1 && !s.Lifecycle.Exited() && text(s) == want
	}
	return false
}

func TestHalfOpenIsNoticedWithinTwoHeartbeats(t *testing.T) {
	for _, beat := range []time.Duration{time.Second, 15 * time.Second} {
		for phase := range 10 {
			synctest.Test(t, func(t *testing.T) {
				w, network := newWorldOnNetwork(t, func(o *uplink.Options) { o.Heartbeat = beat })
				w.until(uplink.StateOnline, time.Minute)
				time.Sleep(3*beat + time.Duration(phase)*beat/10)
				network.turn(false, true)
				if took := w.until(uplink.StateWaiting, 3*beat); took > 2*beat {
					t.Errorf("a heartbeat of %v: noticed after %v", beat, took)
				}
			})
		}
	}
}

// A slow line may keep a ping's answer back. As long as other things come the link is not
// given up, but not for ever.
func TestOtherSignsOfLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const beat = 10 * time.Second
		w, network := newWorldOnNetwork(t, func(o *uplink.Options) { o.Heartbeat = beat })
		w.until(uplink.StateOnline, time.Minute)
		_, child := w.spawn(term.Spec{})
		network.mu.Lock()
		drops := func(msg []byte) bool { return bytes.Contains(msg, []byte(`"ping"`)) }
		network.wires[0].drops.Store(&drops)
		network.mu.Unlock()
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(time.Second):
					child.Print("still here\r\n") // which the host acknowledges
				}
			}
		})
		pass(3 * beat)
		if s := w.link.Status(); s.State != uplink.StateOnline {
			t.Errorf("a link that carries something is %+v", s)
		}
		if took := w.until(uplink.StateWaiting, 10*beat); took > 3*beat {
			t.Errorf("a link that answers no ping was given up after %v more", took)
		}
		close(stop)
		wg.Wait()
	})
}

// After sleep or in another network the link is back within 5 s of the network's return.
func TestBackSoonAfterAMove(t *testing.T) {
	const soon = 5 * time.Second
	for _, c := range []struct {
		name     string
		asleep   time.Duration // with the lid closed nothing runs; here it is only time
		usable   time.Duration // after waking
		swallows bool          // until then packets vanish, otherwise there is no route
		told     bool          // a change of addresses comes when it is usable
	}{
		{"network at once", time.Second, 0, true, false},
		{"soon, no route", time.Second, 3 * time.Second, false, false},
		{"soon, packets vanish", time.Second, 3 * time.Second, true, false},
		{"an address much later", time.Second, 40 * time.Second, true, true},
		{"an address much later, no route", time.Second, 40 * time.Second, false, true},
		{"an address after minutes", time.Second, 10 * time.Minute, true, true},
		{"long enough to be found dead", time.Hour, 2 * time.Second, true, false},
		{"long enough to be found dead, no route", time.Hour, 2 * time.Second, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for phase := 0; phase < 7; phase += testkit.Load(1, 3) {
				synctest.Test(t, func(t *testing.T) {
					w, network := newWorldOnNetwork(t, nil)
					w.until(uplink.StateOnline, time.Minute)
					h, child := w.spawn(term.Spec{})
					time.Sleep(2*time.Minute + time.Duration(phase)*3*time.Second)
					network.turn(!c.swallows, c.swallows)
					child.Print("meanwhile")
					time.Sleep(c.asleep)
					w.link.Moved()
					pass(c.usable)
					if s := w.link.Status().State; s == uplink.StateOnline && c.usable > 2*time.Second {
						t.Fatal("the link has not noticed")
					}
					network.turn(false, false)
					if c.told {
						w.link.Moved()
					}
					usable := time.Now()
					for !w.shows("meanwhile") && time.Since(usable) < time.Minute {
						time.Sleep(10 * time.Millisecond)
					}
					if took := time.Since(usable); took > soon {
						t.Errorf("phase %d: back after %v, %+v", phase, took, w.link.Status())
					}
					if h.Info().Exit != nil {
						t.Error("the child has ended")
					}
				})
			}
		})
	}
}

// When packets vanish for a moment, the attempt that meets this is given up soon, however
// often it happens.
func TestBackSoonAfterABlackHole(t *testing.T) {
	const beat, hole = time.Second, 2500 * time.Millisecond
	// An attempt begins at the end of the hole, takes 2.5 s, and the next one follows
	// within 2 s.
	const soon = 5 * time.Second
	for phase := range 10 {
		synctest.Test(t, func(t *testing.T) {
			w, network := newWorldOnNetwork(t, func(o *uplink.Options) { o.Heartbeat = beat })
			w.until(uplink.StateOnline, time.Minute)
			for n := range 7 { // more often than attempts are bounded shortly
				time.Sleep(2*time.Minute + time.Duration(phase)*beat/10)
				network.turn(false, true)
				time.Sleep(hole)
				network.turn(false, false)
				if took := w.until(uplink.StateOnline, time.Minute); took > soon {
					t.Errorf("phase %d, hole %d: back after %v", phase, n, took)
				}
			}
		})
	}
}

// While nothing comes back, attempts are bounded by 2.5, 2.5, 2.5, 5, 5 s and then by 15
// s, from each loss on.
func TestBoundsOfAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var bounds []time.Duration
		w, network := newWorldOnNetwork(t, nil)
		w.endLink()
		inner := w.opts.Connect
		w.opts.Connect = func(ctx context.Context, e client.Endpoint, o client.Options) (*client.Conn, error) {
			end, _ := ctx.Deadline()
			mu.Lock()
			bounds = append(bounds, time.Until(end))
			mu.Unlock()
			return inner(ctx, e, o)
		}
		w.newLink()
		w.until(uplink.StateOnline, time.Minute)
		for _, up := range []time.Duration{10 * time.Second, 2 * time.Minute} { // one of them resets the pauses
			time.Sleep(up)
			mu.Lock()
			bounds = nil
			mu.Unlock()
			network.turn(false, true)
			time.Sleep(5 * time.Minute)
			mu.Lock()
			got := slices.Clone(bounds[:7])
			mu.Unlock()
			if want := []time.Duration{2500e6, 2500e6, 2500e6, 5e9, 5e9, 15e9, 15e9}; !slices.Equal(got, want) {
				t.Errorf("after %v: %v, want %v", up, got, want)
			}
			network.turn(false, false)
			w.until(uplink.StateOnline, 2*time.Minute)
		}
	})
}

// A move that was none costs one ping and nothing else.
func TestMoveOfAHealthyLink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, network := newWorldOnNetwork(t, nil)
		w.until(uplink.StateOnline, time.Minute)
		since := w.link.Status().Since
		for range 50 {
			w.link.Moved()
			time.Sleep(100 * time.Millisecond)
		}
		if s := w.link.Status(); s.State != uplink.StateOnline || s.Since != since || len(network.tries()) != 1 {
			t.Errorf("after many moves: %+v, %d connections", s, len(network.tries()))
		}
	})
}

// Where trying again is pointless, a move is worth one attempt: it may have been the
// hotel's network that refused.
func TestMoveWhenRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newNetwork()
		network.forbids = true
		w := newWorld(t, host.Options{}, network.in)
		network.over(w.dial)
		w.until(uplink.StateRefused, time.Minute)
		w.link.Moved()
		synctest.Wait()
		if n := len(network.tries()); n != 2 {
			t.Errorf("%d attempts after one move, want 2", n)
		}
		time.Sleep(time.Second)
		if n := len(network.tries()); n > 3 {
			t.Errorf("%d attempts within a second", n)
		}
		locked(&network.mu, func() { network.forbids = false })
		w.link.Moved()
		w.until(uplink.StateOnline, time.Second)
	})
}

// A thousand daemons lose a host together. They come back spread out, and all of them.
func TestNoThunderingHerd(t *testing.T) {
	for _, down := range []time.Duration{0, 20 * time.Second} {
		t.Run(fmt.Sprint(down), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { herd(t, 1000, down) })
		})
	}
}

func herd(t *testing.T, n int, down time.Duration) {
	network := newNetwork()
	network.over(func() (jsonrpc.Channel, error) {
		near, far := testkit.Channels()
		f := &fakeHost{marker: ahp.NewClientTerminals(30000).Meta()}
		go f.serve(context.Background(), far)
		return near, nil
	})
	pool := term.NewPool(term.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	links := make([]*uplink.Link, n)
	for i := range links {
		links[i] = uplink.New(uplink.Options{Name: "lab", ClientID: fmt.Sprint(i), Terminals: pool.As(term.Host("lab")), Connect: network.connect, Heartbeat: time.Hour})
		wg.Go(func() { links[i].Run(ctx) })
	}
	time.Sleep(61 * time.Second) // healthy
	synctest.Wait()

	lost := time.Now()
	network.cut(down > 0)
	time.Sleep(down)
	network.turn(false, false)
	back := time.Now()
	pass(31 * time.Second)

	for i, l := range links {
		if s := l.Status(); s.State != uplink.StateOnline {
			t.Fatalf("link %d is %+v half a minute after the host's return", i, s)
		}
	}
	const slice = 100 * time.Millisecond
	slices := map[time.Duration]int{}
	tries := 0
	for _, at := range network.tries() {
		if at.After(lost) {
			tries++
			slices[at.Sub(lost)/slice]++
		}
	}
	most, mostBack := 0, 0
	for at, k := range slices {
		if most = max(most, k); at*slice >= back.Sub(lost) {
			mostBack = max(mostBack, k)
		}
	}
	t.Logf("down for %v: %d attempts, at most %d in %v, %d after the return", down, tries, most, slice, mostBack)
	if most > 30*n/100 { // 20 % are expected in the first second: two connections each where the host does not know the one before
		t.Errorf("%d attempts of %d daemons within %v", most, n, slice)
	}
	if down >= 20*time.Second && mostBack > 6*n/100 {
		t.Errorf("%d attempts of %d daemons within %v of a host that was away for long", mostBack, n, slice)
	}
}
