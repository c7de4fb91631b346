package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/ahp"
	"tether/events"
	"tether/host"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// awaitParked waits until so many terminals are parked.
func awaitParked(t *testing.T, h *host.Host, n int) {
	t.Helper()
	testkit.Eventually(t, patience, "terminals are parked", func() bool { return len(h.Parked()) == n })
}

// lend announces a terminal that may be kept for an hour, and had another URI before, if
// that is not empty.
func (v *viewer) lend(uri, former string) {
	v.t.Helper()
	must.Do(v.t, v.announce(uri, former))
}

func (v *viewer) announce(uri, former string) error {
	p := clientTerminal(uri, v.id)
	p.Meta = ahp.AddPark(ahp.NewTerminalMeta(former, false), ahp.NewPark(time.Hour, -1))
	return v.call(ahp.MethodCreateTerminal, p, nil)
}

// told is what a stream of events has said.
type told struct {
	mu     sync.Mutex
	all    []events.Event
	active int // streams that have begun, and those that have lost events since
}

func (o *told) Active(string, bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.active++
	return nil
}

func (o *told) Heartbeat(string) error { return nil }
func (o *told) Event(e events.Event) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = append(o.all, e)
	return nil
}

// lines are the events so far, in short.
func (o *told) lines() (all []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.all {
		what := e.Name
		if line, ok := e.Data["line"]; ok {
			what += fmt.Sprint(" ", line)
		}
		if last, ok := e.Data["last"]; ok { // of several in a second
			what += fmt.Sprint(" to ", last)
		}
		all = append(all, what)
	}
	return all
}

// away are terminals in a list for agents.
type awayListed struct {
	ID, Name, Dropped    string
	AwaySince, KeptUntil int64
	Exited               bool
}

// An agent lists and reads a terminal whose machine is away, its wait goes on when the
// machine is back, and each line is told once, in the order of the absence.
func TestAgentsAndAMachineThatIsAway(t *testing.T) {
	h, url := serve(t, host.Options{Access: newUsers("machine-laptop", "agent-bot"), Grace: time.Millisecond, Park: time.Hour})
	const first, second = "ahp-terminal:/first", "ahp-terminal:/second"
	id := host.IDOf(first)
	laptop := as(t, url, "machine-laptop", "laptop", viewOptions{resume: true})
	laptop.lend(first, "")
	laptop.output(first, "one\r\n", 0)
	laptop.ping()
	agent := must.Get(overLines(t, url, "agent-bot", nil))(t)
	out := &told{}
	ctx, cancel := context.WithCancel(t.Context())
	var streams sync.WaitGroup
	defer streams.Wait()
	defer cancel()
	for _, r := range []events.Request{{Name: events.Line, Arguments: json.RawMessage(`{"terminalId":"` + id + `","pattern":"."}`), Oldest: true},
		{Name: events.Exited, Arguments: json.RawMessage(`{"terminalId":"` + id + `"}`)}, {Name: events.MachineAway}, {Name: events.MachineBack}} {
		streams.Go(func() { _ = h.Agents().Stream(ctx, rights.Principal{Role: rights.RoleAgent, Name: "bot"}, &r, out) }) // it ends with ctx
	}
	testkit.Eventually(t, patience, "the streams begin", func() bool { out.mu.Lock(); defer out.mu.Unlock(); return out.active == 4 })
	testkit.Eventually(t, patience, "the first line is told", func() bool { return slices.Contains(out.lines(), events.Line+" one") })
	waits := make(chan waited, 1)
	streams.Go(func() {
		var w waited
		use(t, agent, "wait_terminal", map[string]any{"terminalId": id, "pattern": "three", "timeoutMs": 600000}, &w)
		waits <- w
	})
	laptop.close()
	awaitParked(t, h, 1)
	var all []awayListed
	use(t, agent, "list_terminals", map[string]any{}, &all)
	if len(all) != 1 || all[0].ID != id || all[0].Name != "laptop/build" || all[0].Exited || all[0].AwaySince == 0 || all[0].KeptUntil-all[0].AwaySince != time.Hour.Milliseconds() {
		t.Errorf("listed: %+v", all)
	}
	var read waited
	use(t, agent, "read_terminal", map[string]any{"terminalId": id}, &read)
	if read.History != "one\n" || read.Cursor != 5 || read.Exited {
		t.Errorf("read: %+v", read)
	}
	testkit.Eventually(t, patience, "the absence is told", func() bool { return slices.Contains(out.lines(), events.MachineAway) })

	laptop = as(t, url, "machine-laptop", "laptop", viewOptions{resume: true})
	laptop.lend(second, first)
	laptop.await("the position", func() bool { return laptop.acks[second] == 5 })
	laptop.output(second, "two\r\nthree\r\n", 5)
	w := <-waits
	if w.Reason != "pattern" || w.Line != "three" || w.Cursor != 17 {
		t.Errorf("waited: %+v", w)
	}
	use(t, agent, "read_terminal", map[string]any{"terminalId": id, "since": 5}, &read)
	if read.History != "two\nthree\n" {
		t.Errorf("read on: %+v", read)
	}
	want := []string{events.Line + " one", events.MachineAway, events.MachineBack, events.Line + " two to three"}
	testkit.Eventually(t, patience, "everything is told", func() bool { return len(out.lines()) >= len(want) })
	got := out.lines()
	slices.Sort(got)
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("told: %q", got)
	}
	all = nil
	use(t, agent, "list_terminals", map[string]any{}, &all)
	if len(all) != 1 || all[0].ID != id || all[0].AwaySince != 0 || all[0].KeptUntil != 0 {
		t.Errorf("listed when it is back: %+v", all)
	}
}

// Who reads a parked terminal when it ends for good is told that, and so is who waits for
// it.
func TestTheEndOfAParkedTerminal(t *testing.T) {
	const uri = "ahp-terminal:/lent"
	machine := rights.Principal{Role: rights.RoleMachine, Name: "laptop"}
	for name, end := range map[string]func(t *testing.T, h *host.Host, revoke context.CancelFunc){
		"its time": func(*testing.T, *host.Host, context.CancelFunc) { time.Sleep(time.Hour) },
		"revoked":  func(_ *testing.T, _ *host.Host, revoke context.CancelFunc) { revoke() },
		"the machine's": func(t *testing.T, h *host.Host, _ context.CancelFunc) {
			disposeAs(t, h, machine, "machinelaptop", uri, 0)
		},
		"an administrator's": func(t *testing.T, h *host.Host, _ context.CancelFunc) {
			disposeAs(t, h, rights.Principal{Role: rights.RoleObserver, Name: "ann"}, "x", uri, ahp.CodeNotFound)
			disposeAs(t, h, machine, "another", uri, ahp.CodeNotFound)
			disposeAs(t, h, rights.Principal{Role: rights.RoleAdmin, Name: "root"}, "x", uri, 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := testHost(t, host.Options{Grace: time.Second, Park: time.Hour})
				live, revoke := context.WithCancel(t.Context())
				defer revoke()
				p := machine
				p.Live = live
				laptop := joined(t, h, p, viewOptions{resume: true})
				laptop.lend(uri, "")
				laptop.output(uri, "text", 0)
				laptop.ping()
				laptop.close()
				time.Sleep(2 * time.Second)
				if kept := h.Parked(); len(kept) != 1 {
					t.Fatalf("parked: %v", kept)
				}
				r := must.Get(host.AgentReader(h, host.IDOf(uri)))(t)
				ended := make(chan bool, 1)
				go func() {
					buf := make([]byte, 1000)
					for {
						ev, err := r.Next(t.Context(), buf)
						if err != nil || ev.Exited {
							ended <- ev.Exited
							return
						}
					}
				}()
				synctest.Wait()
				end(t, h, revoke)
				synctest.Wait()
				select {
				case exited := <-ended:
					if !exited {
						t.Error("the reader ended without an exit")
					}
				default:
					t.Error("the reader goes on")
				}
				counted, real, _ := h.Memory()
				if kept := h.Parked(); len(kept) > 0 || len(h.Lent()) > 0 || counted != 0 || real != 0 {
					t.Errorf("parked: %v, lent: %v, memory: %d, %d", kept, h.Lent(), counted, real)
				}
			})
		})
	}
}

// disposeAs has a client dispose of a terminal, which is answered with a code.
func disposeAs(t *testing.T, h *host.Host, p rights.Principal, id, uri string, want jsonrpc.Code) {
	t.Helper()
	near, far := testkit.Channels()
	served := make(chan struct{})
	go func() { defer close(served); _ = host.ServeAs(h, far, p) }()
	v := newViewer(t, near, id)
	v.initialize(viewOptions{resume: p.Role == rights.RoleMachine})
	if got := code(v.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: uri}, nil)); got != int64(want) {
		t.Errorf("%s as %s: %d, want %d", p.Name, id, got, want)
	}
	v.close()
	<-served
}

// Only the owner's own terminal continues a parked one, and nobody else takes its URI, by
// which its id is known.
func TestWhoContinuesAParkedTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{Grace: time.Second, Park: time.Hour})
		const lent, next = "ahp-terminal:/lent", "ahp-terminal:/next"
		ann := rights.Principal{Role: rights.RoleMachine, Name: "laptop", Owner: "p-ann"}
		laptop := joined(t, h, ann, viewOptions{resume: true})
		laptop.lend(lent, "")
		laptop.output(lent, "secret", 0)
		laptop.ping()
		laptop.close()
		time.Sleep(2 * time.Second)
		for _, other := range []rights.Principal{{Role: rights.RoleMachine, Name: "desk"}, {Role: rights.RoleMachine, Name: "desk", Owner: "p-ann"}, {Role: rights.RoleAdmin, Name: "root"}} {
			near, far := testkit.Channels()
			go func() { _ = host.ServeAs(h, far, other) }()
			v := newViewer(t, near, "other"+other.Name+other.Owner)
			v.initialize(viewOptions{resume: true})
			if got := code(v.announce(lent, "")); got != int64(ahp.CodeAlreadyExists) {
				t.Errorf("%+v has taken the URI: %d", other, got)
			}
			v.lend(next, lent)
			must.Do(t, v.subscribe(next))
			if text := v.textOf(next); text != "" || v.state(next).Meta.Former != "" {
				t.Errorf("%+v has taken it over: %q, %+v", other, text, v.state(next).Meta)
			}
			must.Do(t, v.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: next}, nil))
			v.close()
			synctest.Wait()
		}
		laptop = joined(t, h, ann, viewOptions{resume: true})
		laptop.lend(lent, "") // under its own URI, as a program may that does not know that it was gone
		laptop.await("the position", func() bool { return laptop.acks[lent] == 6 })
		if kept := h.Parked(); len(kept) > 0 {
			t.Errorf("parked: %v", kept)
		}
		counted, real, _ := h.Memory()
		if counted != real {
			t.Errorf("memory: %d counted, %d real", counted, real)
		}
	})
}

// Where memory is short, the terminal that is parked the longest loses its text first,
// before anything that is lent now, and says why; it stays listed and goes on when its
// machine is back.
func TestParkedTerminalsGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{Grace: time.Second, Park: time.Hour, MaxMemory: 2 << 20, LogBytes: 4 << 10, Scrollback: 1 << 20})
		var uris []string
		for n := range 3 {
			uri := fmt.Sprint("ahp-terminal:/", n)
			uris = append(uris, uri)
			v := connect(t, h, fmt.Sprint("m", n), viewOptions{resume: true})
			v.lend(uri, "")
			v.output(uri, strings.Repeat(fmt.Sprint(n), 64<<10), 0)
			for i := range 7 {
				v.output(uri, strings.Repeat(fmt.Sprint(n), 64<<10), int64(i+1)*64<<10)
			}
			v.ping()
			v.close()
			time.Sleep(2 * time.Second)
		}
		busy := connect(t, h, "busy", viewOptions{resume: true})
		busy.create("ahp-terminal:/busy")
		for range 14 {
			busy.output("ahp-terminal:/busy", strings.Repeat("b", 64<<10), -1)
		}
		busy.ping()
		var kept ahp.ParkedResult
		must.Do(t, busy.call(ahp.MethodParked, struct{}{}, &kept))
		if len(kept.Terminals) != 3 || kept.Terminals[0].Channel != uris[0] || kept.Terminals[0].Dropped == "" || kept.Terminals[1].Dropped != "" || kept.Terminals[2].Dropped != "" {
			t.Errorf("kept: %+v", kept.Terminals)
		}
		for _, one := range h.Lent() {
			want := map[string]int64{host.IDOf(uris[0]): 0, host.IDOf(uris[1]): 512 << 10, host.IDOf(uris[2]): 512 << 10, host.IDOf("ahp-terminal:/busy"): 14 * 64 << 10}[one.ID]
			if one.Bytes != want {
				t.Errorf("%s has %d bytes, want %d", one.ID, one.Bytes, want)
			}
		}
		counted, real, _ := h.Memory()
		if counted != real || counted > 2<<20 {
			t.Errorf("memory: %d counted, %d real", counted, real)
		}
		r := must.Get(host.AgentReader(h, host.IDOf(uris[0])))(t)
		if ev, ok, err := r.TryNext(make([]byte, 1000)); err != nil || !ok || ev.Lost != 512<<10 {
			t.Errorf("read: %+v, %t, %v", ev, ok, err)
		}
		again := connect(t, h, "m0", viewOptions{resume: true})
		again.lend("ahp-terminal:/again", uris[0])
		again.await("the position", func() bool { return again.acks["ahp-terminal:/again"] == 512<<10 })
		again.output("ahp-terminal:/again", "more", 512<<10)
		again.ping()
		if ev, ok, err := r.TryNext(make([]byte, 1000)); err != nil || !ok || string(ev.Data) != "more" {
			t.Errorf("read on: %+v, %t, %v", ev, ok, err)
		}
	})
}

// A machine has no more parked terminals than it may lend: the one that is away longest
// goes.
func TestHowManyTerminalsAMachineParks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{Grace: time.Second, Park: time.Hour, MaxTerminals: 2})
		for n := range 5 {
			v := joined(t, h, rights.Principal{Role: rights.RoleMachine, Name: "laptop"}, viewOptions{resume: true})
			v.lend(fmt.Sprint("ahp-terminal:/", n), "")
			v.close()
			time.Sleep(2 * time.Second)
		}
		if kept, want := h.Parked(), []string{host.IDOf("ahp-terminal:/3"), host.IDOf("ahp-terminal:/4")}; !slices.Equal(kept, want) {
			t.Errorf("parked: %v, want %v", kept, want)
		}
	})
}

// For AHP a parked terminal has exited, also for an observer that had fallen behind; the
// catalogue does not have it.
func TestAHPKnowsNoParkedTerminals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{Grace: time.Second, Park: time.Hour})
		const uri = "ahp-terminal:/lent"
		laptop := connect(t, h, "laptop", viewOptions{resume: true})
		laptop.lend(uri, "")
		watcher := connect(t, h, "watcher", viewOptions{subs: []string{ahp.RootURI, uri}})
		laptop.output(uri, "text", 0)
		watcher.awaitText(uri, "text")
		laptop.close()
		watcher.await("the exit", func() bool { return watcher.states[uri].Lifecycle.Exited() })
		watcher.await("the catalogue without it", func() bool { return len(watcher.root.Terminals) == 0 })
		fresh := connect(t, h, "fresh", viewOptions{subs: []string{ahp.RootURI, uri}})
		if len(fresh.catalogue().Terminals) > 0 || len(fresh.result.Snapshots) != 1 || code(fresh.subscribe(uri)) != int64(ahp.CodeNotFound) {
			t.Errorf("AHP shows %+v, %d snapshots", fresh.catalogue(), len(fresh.result.Snapshots))
		}
		laptop = connect(t, h, "laptop", viewOptions{resume: true})
		laptop.lend("ahp-terminal:/next", uri)
		watcher.await("the terminal that continues it", func() bool {
			return len(watcher.root.Terminals) == 1 && watcher.root.Terminals[0].Resource == "ahp-terminal:/next" && watcher.root.Terminals[0].Meta.Former == uri && !watcher.root.Terminals[0].Lifecycle.Exited()
		})
		must.Do(t, watcher.subscribe("ahp-terminal:/next"))
		laptop.output("ahp-terminal:/next", " more", 4)
		watcher.awaitText("ahp-terminal:/next", "text more")
		compareFresh(t, h, watcher)
	})
}

// What is withdrawn from somebody while the machine is away is gone for that one at once,
// by whoever withdraws it.
func TestWithdrawingAParkedTerminal(t *testing.T) {
	for name, withdraw := range map[string]func(t *testing.T, h *host.Host, s *staff){
		"an administrator ends the grant": func(t *testing.T, h *host.Host, _ *staff) {
			if !h.Terminals().EndGrant(theLent.id, "bob") {
				t.Error("it was not granted")
			}
		},
		"the person leaves": func(_ *testing.T, _ *host.Host, s *staff) {
			s.change(func(r *rights.Roster) { delete(r.People, "p-bob") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStaff(true, "machine.laptop.ann", "observer.bob.bob", "observer.ann.ann")
			h, url := serve(t, host.Options{Access: s, People: s, Grace: time.Millisecond, Park: time.Hour})
			laptop := as(t, url, "machine.laptop.ann", "laptop", viewOptions{resume: true})
			laptop.lend(theLent.uri, "")
			laptop.output(theLent.uri, "hello", 0)
			must.Do(t, laptop.audience(theLent.uri, to("bob")))
			laptop.close()
			awaitParked(t, h, 1)
			status := func(token string) int {
				r, _ := ask(t, url, visit{path: "/terminals/" + theLent.id + "/state", token: token})
				return r.StatusCode
			}
			if status("observer.bob.bob") != http.StatusOK {
				t.Error("bob does not see what was granted")
			}
			withdraw(t, h, s)
			testkit.Eventually(t, patience, "bob does not see it any more", func() bool { return status("observer.bob.bob") == http.StatusNotFound })
			if status("observer.ann.ann") != http.StatusOK {
				t.Error("its owner does not see it")
			}
		})
	}
}

// A guest sees the shared terminal at the page for guests while its machine is away, and
// nothing else; the link ends as ever.
func TestGuestsOfAParkedTerminal(t *testing.T) {
	h, url := serve(t, host.Options{Access: newUsers("machine-laptop", "observer-ann"), Grace: time.Millisecond, Park: time.Hour, ShareURL: "https://host.example/s/#"})
	laptop := as(t, url, "machine-laptop", "laptop", viewOptions{resume: true})
	laptop.lend(theLent.uri, "")
	laptop.lend("ahp-terminal:/other", "")
	laptop.output(theLent.uri, "\x1b[31mhello", 0)
	must.Do(t, laptop.shares(theLent.uri, "parkedid", false, time.Now().Add(time.Hour)))
	laptop.close()
	awaitParked(t, h, 2)
	secretText, _ := linkSecret()
	_, _, cookies, text := openLink(t, url, "parkedid", secretText, http.Header{"Origin": {"http" + strings.TrimPrefix(url, "ws")}})
	if len(cookies) != 1 {
		t.Fatalf("no cookie: %s", text)
	}
	cookie := cookies[0].Name + "=" + cookies[0].Value
	r, body := ask(t, url, visit{path: "/s/state", cookie: cookie})
	if r.StatusCode != http.StatusOK || !strings.Contains(body, `"state":"away"`) || !strings.Contains(body, theLent.id) {
		t.Errorf("state: %d %s", r.StatusCode, body)
	}
	r, body = ask(t, url, visit{path: "/s/terminal", cookie: cookie})
	if r.StatusCode != http.StatusOK || !strings.Contains(body, "hello") {
		t.Errorf("terminal: %d %s", r.StatusCode, body)
	}
	if r, _ = ask(t, url, visit{path: "/s/terminal"}); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a cookie: %d", r.StatusCode)
	}
	laptop = as(t, url, "machine-laptop", "laptop", viewOptions{resume: true})
	must.Do(t, laptop.call(ahp.MethodUnshare, ahp.UnshareParams{Channel: theLent.uri, ID: "parkedid"}, nil))
	if r, _ = ask(t, url, visit{path: "/s/terminal", cookie: cookie}); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("after its end: %d", r.StatusCode)
	}
}

// Times are brought into range, and what makes no sense keeps nothing.
func TestParkTimes(t *testing.T) {
	h := steadyHost(t, host.Options{Park: time.Hour})
	laptop := connect(t, h, "laptop", viewOptions{resume: true})
	laptop.lend(theLent.uri, "")
	negative, most := int64(-1), int64(math.MaxInt64)
	for name, c := range map[string]struct {
		p    ahp.ParkParams
		want int64
	}{
		"negative":      {ahp.ParkParams{Channel: theLent.uri, Park: ahp.Park{ForMs: -1}}, -32602},
		"negative loan": {ahp.ParkParams{Channel: theLent.uri, Park: ahp.Park{LoanMs: &negative}}, -32602},
		"no URI":        {ahp.ParkParams{Channel: "x"}, -32602},
		"another":       {ahp.ParkParams{Channel: theNone.uri}, int64(ahp.CodeNotFound)},
		"huge":          {ahp.ParkParams{Channel: theLent.uri, Park: ahp.Park{ForMs: most, LoanMs: &most}}, 0},
	} {
		if got := code(laptop.call(ahp.MethodPark, c.p, nil)); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	if p := ahp.FindPark(ahp.Meta{ahp.ParkKey: json.RawMessage(`{"forMs":-5}`)}); p != (ahp.Park{}) {
		t.Errorf("found %+v", p)
	}
	if p := (ahp.Park{ForMs: most}); p.During() != ahp.MaxPark {
		t.Errorf("during %v", p.During())
	}
}
