package host_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/host/shells"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// window is how much of a terminal's text a daemon sends without an acknowledgement, in
// bytes.
const window = 64 << 10

// createHolding announces a terminal whose child waits for slow readers.
func (v *viewer) createHolding(uri string) {
	v.t.Helper()
	p := clientTerminal(uri, v.id)
	p.Meta = ahp.NewTerminalMeta("", true)
	if err := v.call(ahp.MethodCreateTerminal, p, nil); err != nil {
		v.t.Fatalf("create %s: %v", uri, err)
	}
}

// flood sends total bytes of numbered lines in pieces of 16 KiB, as fast as the window
// allows, and returns them.
func (v *viewer) flood(uri string, total int) string {
	v.t.Helper()
	var all strings.Builder
	for n := 0; all.Len() < total; n++ {
		fmt.Fprintf(&all, "%08d \x1b[32mok\x1b[0m some text that fills the line\r\n", n)
	}
	text := all.String()
	for at := 0; at < len(text); {
		end := min(at+16<<10, len(text))
		v.await("room in the window", func() bool { return int64(end)-v.acks[uri] <= window })
		v.output(uri, text[at:end], int64(at))
		at = end
	}
	return text
}

// sameText fails if the viewer does not get exactly want.
func sameText(t *testing.T, v *viewer, uri, want string) {
	t.Helper()
	v.await("everything", func() bool {
		select {
		case <-v.done:
			return true
		default:
			return v.text[uri].Len() >= len(want)
		}
	})
	if got := v.textOf(uri); got != want {
		t.Errorf("%s got %d bytes, not the %d that were sent (skipped: %v)", v.id, len(got), len(want), strings.Contains(got, "fell behind"))
	}
}

func TestEveryObserverOfAHoldingTerminalGetsEveryByte(t *testing.T) {
	for _, c := range []struct{ observers, bytes int }{{10, testkit.Load(1<<20, 256<<10)}, {50, testkit.Load(512<<10, 160<<10)}} {
		t.Run(fmt.Sprint(c.observers), func(t *testing.T) {
			testkit.Leaks(t)
			_, url := serve(t, host.Options{LogBytes: 128 << 10, Scrollback: 64 << 10})
			owner := dial(t, url, "laptop", viewOptions{resume: true})
			owner.createHolding(uri)
			owner.forget()
			var all []*viewer
			for n := range c.observers {
				v := dial(t, url, fmt.Sprint("observer ", n), viewOptions{subs: []string{uri}})
				v.forget()
				all = append(all, v)
			}
			text := owner.flood(uri, c.bytes)
			for _, v := range all {
				sameText(t, v, uri, text)
			}
		})
	}
}

// Text in transit when the owner is held is kept for every subscriber that it waits for,
// however long it becomes in JSON.
func TestTextInTransitIsKept(t *testing.T) {
	const most = 256 << 10 // on its way while nobody types, in bytes
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		owner.createHolding(uri)
		owner.forget()
		var all []*viewer
		var gates []*gate
		for n := range 3 {
			v, g := slowViewer(t, h, fmt.Sprint("observer ", n), uri)
			all, gates = append(all, v), append(gates, g)
		}
		stop := make(chan struct{})
		var turns sync.WaitGroup
		defer turns.Wait()
		defer close(stop)
		turns.Go(func() { // one after the other, so that each falls behind while the owner is held for another
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
					gates[n/10%len(gates)].allow(2)
				}
			}
		})
		piece := strings.Repeat("\x1b\x1b\x1b\a\r\n", 64<<10/6)
		var text strings.Builder
		for range testkit.Load(40, 9) {
			end := int64(text.Len() + len(piece))
			owner.await("room in the window", func() bool { return end-owner.acks[uri] <= most })
			owner.output(uri, piece, int64(text.Len()))
			text.WriteString(piece)
		}
		owner.ping()
		for _, g := range gates {
			g.openUp()
		}
		for _, v := range all {
			sameText(t, v, uri, text.String())
		}
	})
}

// An observer that takes too little, or nothing, holds the terminal for a moment, is
// skipped and told, and costs the others nothing more.
func TestObserversThatAreTooSlowAreSkipped(t *testing.T) {
	for name, allow := range map[string]func(*gate, <-chan struct{}){
		"dripping": func(g *gate, stop <-chan struct{}) { // 16 KiB a second
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for {
				select {
				case <-tick.C:
					g.allow(1)
				case <-stop:
					return
				}
			}
		},
		"stalled": func(_ *gate, stop <-chan struct{}) { <-stop },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := testHost(t, host.Options{LogBytes: 256 << 10, StallTime: time.Hour})
				owner := connect(t, h, "laptop", viewOptions{resume: true})
				owner.createHolding(uri)
				owner.forget()
				watcher := connect(t, h, "watcher", viewOptions{subs: []string{uri}})
				watcher.forget()
				slow, g := slowViewer(t, h, "slow", uri)
				stop := make(chan struct{})
				var reading sync.WaitGroup
				reading.Go(func() { allow(g, stop) })
				began := time.Now()
				text := owner.flood(uri, 2<<20)
				sameText(t, watcher, uri, text)
				if took := time.Since(began); took < time.Second || took > 1500*time.Millisecond {
					t.Errorf("the flood took %v, want a second of waiting and a little more", took)
				}
				close(stop)
				reading.Wait()
				g.openUp()
				slow.awaitText(uri, text[len(text)-100:])
				if got := slow.textOf(uri); !strings.Contains(got, "bytes skipped, this viewer fell behind") {
					t.Errorf("the slow observer has %d bytes and was not told that it missed some", len(got))
				}
				began = time.Now()
				owner.ping()
				slow.ping()
				if took := time.Since(began); took != 0 {
					t.Errorf("after the flood, answers took %v", took)
				}
			})
		})
	}
}

// An observer that was skipped holds the terminal again once it has caught up.
func TestASkippedObserverHoldsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{LogBytes: 256 << 10, StallTime: time.Hour})
		owner := connect(t, h, "laptop", viewOptions{resume: true})
		owner.createHolding(uri)
		owner.forget()
		v, g := slowViewer(t, h, "slow", uri)
		v.forget()
		first := owner.flood(uri, 1<<20) // it reads nothing, and is skipped
		g.allow(1 << 15)
		v.awaitText(uri, first[len(first)-100:])
		synctest.Wait()
		before := len(v.textOf(uri))
		began := time.Now()
		stop := make(chan struct{})
		defer close(stop)
		go func() { // 160 KiB a second
			for {
				select {
				case <-time.After(100 * time.Millisecond):
					g.allow(1)
				case <-stop:
					return
				}
			}
		}()
		for len(g.tokens) > 0 {
			<-g.tokens
		}
		second := strings.Repeat("0123456789abcde\n", 64<<10)
		sent := int64(len(first))
		for at := 0; at < len(second); at += 16 << 10 {
			owner.await("room in the window", func() bool { return sent+16<<10-owner.acks[uri] <= window })
			owner.output(uri, second[at:at+16<<10], sent)
			sent += 16 << 10
		}
		v.await("all of the second flood", func() bool { return v.text[uri].Len()-before >= len(second) })
		if got := v.textOf(uri)[before:]; got != second {
			t.Errorf("of the second flood it has %d bytes that are not the %d sent", len(got), len(second))
		}
		if took := time.Since(began); took < 5*time.Second {
			t.Errorf("the second flood took %v: the observer did not hold it", took)
		}
	})
}

// Observers that come and go during a flood change nothing for who stays.
func TestObserversThatComeAndGo(t *testing.T) {
	testkit.Leaks(t)
	_, url := serve(t, host.Options{LogBytes: 128 << 10, Scrollback: 64 << 10})
	owner := dial(t, url, "laptop", viewOptions{resume: true})
	owner.createHolding(uri)
	owner.forget()
	watcher := dial(t, url, "watcher", viewOptions{subs: []string{uri}})
	watcher.forget()
	stop := make(chan struct{})
	var all sync.WaitGroup
	for n := range 3 {
		all.Go(func() {
			for round := 0; ; round++ {
				select {
				case <-stop:
					return
				default:
				}
				v := dial(t, url, fmt.Sprintf("guest %d %d", n, round), viewOptions{subs: []string{uri}})
				v.ping()
				v.close()
			}
		})
	}
	text := owner.flood(uri, testkit.Load(2<<20, 512<<10))
	close(stop)
	all.Wait()
	sameText(t, watcher, uri, text)
}

// A shell of the host waits for its slowest observer that keeps up.
func TestAShellOfTheHostWaitsForAllObservers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := &fakeRunner{procs: map[string]*fakeProcess{}}
		h := testHost(t, host.Options{Runner: runner, LogBytes: 128 << 10})
		v := connect(t, h, "person", viewOptions{})
		must.Do(t, v.call(ahp.MethodCreateTerminal, serverTerminal(uri, "person"), nil))
		must.Do(t, v.subscribe(uri))
		v.forget()
		slow, g := slowViewer(t, h, "slow", uri)
		slow.forget()
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			for {
				select {
				case <-time.After(50 * time.Millisecond):
					g.allow(1)
				case <-stop:
					return
				}
			}
		}()
		text := strings.Repeat("0123456789abcde\n", 1<<10)
		const pieces = 100
		go func() {
			for range pieces {
				runner.procs[uri].events <- shells.Event{Text: []byte(text)}
			}
		}()
		sameText(t, v, uri, strings.Repeat(text, pieces))
		sameText(t, slow, uri, strings.Repeat(text, pieces))
	})
}

// An acknowledgement that was owed before the owner was held does not cover later text.
func TestAnAckThatIsOwedCoversNothingLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{LogBytes: 128 << 10, HoldTime: time.Hour})
		near, far := testkit.Channels()
		served := make(chan struct{})
		go func() { defer close(served); _ = h.ServeChannel(context.Background(), far) }()
		g := &gate{Channel: near, tokens: make(chan struct{}, 1<<10), open: make(chan struct{})}
		owner := newViewer(t, g, "laptop")
		t.Cleanup(func() { owner.close(); <-served })
		g.allow(8)
		owner.initialize(viewOptions{resume: true})
		owner.createHolding(uri)
		slowViewer(t, h, "slow", uri) // reads nothing
		synctest.Wait()
		for len(g.tokens) > 0 { // the owner does not read for a while
			<-g.tokens
		}
		sent := int64(0)
		for range 16 {
			owner.output(uri, strings.Repeat("x", 4<<10), sent)
			sent += 4 << 10
			synctest.Wait()
		}
		g.openUp()
		synctest.Wait()
		owner.mu.Lock()
		defer owner.mu.Unlock()
		if got := owner.acks[uri]; got > 48<<10 {
			t.Errorf("%d of %d bytes are acknowledged, although an observer is more than 32 KiB behind", got, sent)
		}
	})
}
