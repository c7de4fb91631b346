package uplink_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/loans"
	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

const day = 24 * time.Hour

// parking lets a host keep terminals for an hour and a machine for a day.
var parking = host.Options{Grace: 30 * time.Second, Park: time.Hour, ShareURL: "https://host.example/s/#"}

func parks(o *uplink.Options) { o.Park = day }

// ask sends a request to the host as somebody who watches there.
func (w *world) ask(method string, params, result any) error {
	w.t.Helper()
	w.mu.Lock()
	down := w.down
	w.down = false
	w.mu.Unlock()
	ch, err := w.dial()
	locked(&w.mu, func() { w.down = down })
	must.Do(w.t, err)
	c := must.Get(client.ConnectChannel(w.ctx, ch, client.Options{ClientID: "looker"}))(w.t)
	defer c.Close()
	return c.Peer().Call(w.ctx, method, params, result)
}

// parked is what the host keeps while the machine is away.
func (w *world) parked() []ahp.Parked {
	w.t.Helper()
	var r ahp.ParkedResult
	if err := w.ask(ahp.MethodParked, struct{}{}, &r); err != nil || r.Validate() != nil {
		w.t.Fatal(err, r)
	}
	return r.Terminals
}

// doors are the terminals that the host's own doors show, with their text as the page
// serves it, by id.
func (w *world) doors() map[string]string {
	w.t.Helper()
	all := map[string]string{}
	for _, one := range w.host.Lent() {
		answer := httptest.NewRecorder()
		w.host.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "http://localhost/terminals/"+one.ID+".txt", nil))
		if answer.Code != http.StatusOK {
			w.t.Fatalf("%s: %d %s", one.ID, answer.Code, answer.Body)
		}
		all[one.ID] = answer.Body.String()
	}
	return all
}

// door is the one terminal that the host's own doors show.
func (w *world) door() (id, text string) {
	w.t.Helper()
	all := w.doors()
	if len(all) != 1 {
		w.t.Fatalf("the doors show %d terminals", len(all))
	}
	for id, text = range all {
	}
	return id, strings.TrimSpace(text)
}

// A terminal whose machine is away for longer than the grace time is gone for AHP and
// stays at the host's own doors; when the machine is back, it goes on there under the
// same id, and under another URI in AHP, with what was printed meanwhile, whatever has
// become of it.
func TestAParkedTerminalGoesOn(t *testing.T) {
	for _, test := range []struct {
		name  string
		while func(t *testing.T, h term.Handle, print func(string), end func())
		text  string
		left  int // terminals that the doors show in the end
	}{
		{"it runs", func(_ *testing.T, _ term.Handle, print func(string), _ func()) { print("during ") }, "before during after", 1},
		{"it has ended", func(_ *testing.T, _ term.Handle, print func(string), end func()) { print("during"); end() }, "before during", 1},
		{"it is not shared any more", func(t *testing.T, h term.Handle, _ func(string), _ func()) {
			check.OK(t, h.Unlend("lab"))
		}, "", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, parking, parks)
				h, child := w.spawn(term.Spec{Nonce: "n0"})
				prints(child, "\x1b]633;E;make;n0\a\x1b]633;C;n0\abefore ")
				first, _ := w.sole()
				id, _ := w.door()
				w.cut(true)
				time.Sleep(20 * time.Second)
				if len(w.parked()) > 0 {
					t.Error("it is parked within the grace time")
				}
				time.Sleep(20 * time.Second)
				if seen := w.observeWhileDown(); len(seen) > 0 {
					t.Errorf("AHP still shows %v", seen)
				}
				if kept := w.parked(); len(kept) != 1 || kept[0].Channel != first.Resource || kept[0].ID != id || kept[0].AwayMs != 40_000 || kept[0].LeftMs != (time.Hour-40*time.Second).Milliseconds() || kept[0].Own {
					t.Fatalf("parked: %+v", kept)
				}
				if again, text := w.door(); again != id || text != "before" {
					t.Errorf("the doors show %s, %q", again, text)
				}
				test.while(t, h, func(s string) { child.Print(s); synctest.Wait() }, func() { child.End(7); synctest.Wait() })
				w.up()
				if test.left == 0 {
					if left := w.doors(); len(left) > 0 || len(w.parked()) > 0 {
						t.Errorf("the doors still show %v", left)
					}
					return
				}
				child.Print("after\x1b]633;D;0;n0\a")
				pass(time.Second)
				info, state := w.sole()
				if info.Resource == first.Resource || info.Meta.Former != first.Resource {
					t.Errorf("it was %s and is %s, formerly %s", first.Resource, info.Resource, info.Meta.Former)
				}
				if again, shown := w.door(); again != id || shown != test.text || text(state) != test.text {
					t.Errorf("the doors show %s, %q; AHP %q", again, shown, text(state))
				}
				if len(state.Content) != 1 || state.Content[0].CommandLine != "make" {
					t.Errorf("its content is %+v", state.Content)
				}
				if len(w.parked()) > 0 {
					t.Error("it is parked still")
				}
				// And once more: the id stays what it was at first.
				w.cut(true)
				time.Sleep(time.Minute)
				w.up()
				if again, shown := w.door(); again != id || shown != test.text {
					t.Errorf("after another absence the doors show %s, %q", again, shown)
				}
			})
		})
	}
}

// Nothing is kept unless both sides allow it, nor for longer than either does, nor beyond
// the loan.
func TestHowLongATerminalIsParked(t *testing.T) {
	for _, test := range []struct {
		name     string
		machine  time.Duration
		host     time.Duration
		loan     time.Duration // 0: without an end
		change   time.Duration // of the loan, while it is lent; 0: none
		wantLeft time.Duration // after a minute; 0: it is gone
	}{
		{"neither", 0, 0, 0, 0, 0},
		{"the host alone", 0, time.Hour, 0, 0, 0},
		{"the machine alone", day, 0, 0, 0, 0},
		{"the host allows less", day, time.Hour, 0, 0, 59 * time.Minute},
		{"the machine allows less", 10 * time.Minute, time.Hour, 0, 0, 9 * time.Minute},
		{"for less than the grace time", 20 * time.Second, time.Hour, 0, 0, 0},
		{"the loan ends before", day, time.Hour, 5 * time.Minute, 0, 4 * time.Minute},
		{"the loan ends within the grace time", day, time.Hour, 20 * time.Second, 0, 0},
		{"the loan's end has changed", day, time.Hour, time.Hour, 3 * time.Minute, 2 * time.Minute},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := parking
				o.Park = test.host
				w := newWorld(t, o, func(o *uplink.Options) { o.Park = test.machine })
				h, child := w.spawn(term.Spec{})
				lend := func(d time.Duration) {
					until := time.Now().Add(d)
					must.Do(t, h.LendTo("lab", loans.Change{Until: &until}))
					synctest.Wait()
				}
				if test.loan > 0 {
					lend(test.loan)
				}
				if test.change > 0 {
					lend(test.change)
				}
				prints(child, "text")
				w.cut(true)
				pass(time.Minute)
				kept := w.parked()
				if test.wantLeft == 0 {
					if len(kept) > 0 || len(w.doors()) > 0 {
						t.Errorf("kept: %+v", kept)
					}
					return
				}
				if len(kept) != 1 || kept[0].LeftMs != test.wantLeft.Milliseconds() {
					t.Fatalf("kept: %+v, want %v", kept, test.wantLeft)
				}
				time.Sleep(test.wantLeft - time.Second)
				if _, text := w.door(); text != "text" {
					t.Errorf("shown: %q", text)
				}
				time.Sleep(2 * time.Second)
				if left := w.doors(); len(left) > 0 {
					t.Errorf("beyond its time the doors show %v", left)
				}
			})
		})
	}
}

// The status says what a host may keep while it is offline, also of what was withdrawn
// meanwhile; the withdrawal takes effect when the host is back, and at once while it is
// there. A daemon that was started since knows it, too, and has the host drop what it
// does not know any more.
func TestUnlendingWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, parking, parks)
		one, _ := w.spawn(term.Spec{})
		two, _ := w.spawn(term.Spec{})
		w.spawn(term.Spec{})
		must.Do(t, one.Unlend("lab"))
		synctest.Wait()
		if all := w.doors(); len(all) != 2 {
			t.Errorf("while the host is there, it keeps %v", all)
		}
		cut := time.Now()
		w.cut(true)
		time.Sleep(time.Minute)
		if len(w.parked()) != 2 {
			t.Fatalf("parked: %+v", w.parked())
		}
		s := w.link.Status()
		if len(s.Terminals) != 2 || s.Terminals[0].KeptUntil.Sub(cut) < time.Hour || s.Terminals[0].KeptUntil.Sub(cut) > time.Hour+5*time.Minute || s.Withdrawn != 0 {
			t.Errorf("status: %+v", s)
		}
		must.Do(t, two.Unlend("lab"))
		synctest.Wait()
		if s = w.link.Status(); s.Withdrawn != 1 || s.KeptUntil.Sub(cut) < time.Hour || len(s.Terminals) != 1 {
			t.Errorf("withdrawn while away: %+v", s)
		}
		w.endLink() // another daemon: it remembers nothing
		w.newLink()
		time.Sleep(time.Minute)
		if s = w.link.Status(); len(s.Terminals) != 1 || s.Terminals[0].KeptUntil.IsZero() {
			t.Errorf("another daemon says %+v", s)
		}
		if len(w.parked()) != 2 {
			t.Errorf("parked: %+v", w.parked())
		}
		w.up()
		if all := w.doors(); len(all) != 1 || len(w.parked()) != 0 {
			t.Errorf("after that the host has %v and keeps %+v", all, w.parked())
		}
		if s = w.link.Status(); s.Withdrawn != 0 || !s.Terminals[0].KeptUntil.IsZero() {
			t.Errorf("online: %+v", s)
		}
	})
}

// What was printed beyond the bound of the machine's log while it was away is a gap to
// the byte behind the parked text.
func TestAGapBehindParkedText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, parking, parks)
		_, child := w.spawn(term.Spec{})
		prints(child, "kept\r\n")
		w.cut(true)
		time.Sleep(time.Minute)
		for range 100 {
			child.Print(strings.Repeat("x", 1998) + "\r\n") // into a log of 64 KiB
		}
		w.up()
		child.Print("last")
		pass(time.Second)
		_, state := w.sole()
		lost := w.link.Status().Terminals[0].Lost
		_, shown := w.door()
		want := fmt.Sprintf("kept\n\n[tether: %d bytes of output are missing here]\n", lost)
		if lost < 100_000 || state.Meta.Missing != lost || !strings.HasPrefix(shown, want) || !strings.HasSuffix(shown, "\nlast") {
			t.Errorf("%d bytes lost, %d missing; shown: %.200q", lost, state.Meta.Missing, shown)
		}
	})
}

// A host that says nonsense about what it keeps has no effect, and one that does not know
// the methods is not asked.
func TestAHostThatParksNothing(t *testing.T) {
	for name, marker := range map[string]func(*ahp.ClientTerminals){"that does not park": func(*ahp.ClientTerminals) {}, "that talks nonsense": func(m *ahp.ClientTerminals) { m.ParkMs = 1000 }} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, host.Options{}, parks)
				w.cut(true)
				m := ahp.NewClientTerminals(30_000)
				marker(&m)
				f := &parkHost{fakeHost: fakeHost{marker: m.Meta(), target: ahp.TargetClient}}
				w.serve = f.serve
				w.cut(false)
				w.link.Nudge()
				w.online()
				synctest.Wait()
				if want := m.ParkMs > 0; f.asked != want {
					t.Errorf("asked %t, want %t", f.asked, want)
				}
				if w.link.Status().State != uplink.StateOnline {
					t.Errorf("status: %+v", w.link.Status())
				}
			})
		})
	}
}

// parkHost answers the question what it keeps with what no machine can have lent.
type parkHost struct {
	fakeHost
	asked bool
}

func (f *parkHost) serve(ctx context.Context, ch jsonrpc.Channel) {
	p := jsonrpc.NewPeer(ch, jsonrpc.Options{Handler: f})
	f.fakeHost.mu.Lock()
	f.peer = p
	f.text, f.exited = map[string]string{}, map[string]*int64{}
	f.fakeHost.mu.Unlock()
	p.Run(ctx)
}

func (f *parkHost) Handle(ctx context.Context, r *jsonrpc.Request) {
	if r.Method == ahp.MethodParked {
		f.asked = true
		r.Reply(json.RawMessage(`{"terminals":[{"channel":"no uri","own":true}]}`))
		return
	}
	f.fakeHost.Handle(ctx, r)
}
