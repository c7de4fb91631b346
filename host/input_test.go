package host_test

import (
	"context"
	"fmt"
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
)

// says makes a client report how the program in a terminal uses its keyboard.
func (v *viewer) says(uri, state string, since time.Time) {
	v.t.Helper()
	must.Do(v.t, v.peer.SendRaw(context.Background(), ahp.AppendState(nil, ahp.NewState(uri, state, since))))
}

// awaits is the state of a terminal in the catalogue.
func (v *viewer) awaits(uri string) string {
	for _, t := range v.catalogue().Terminals {
		if t.Resource == uri {
			return t.Meta.Awaits.String()
		}
	}
	return "not there"
}

// The owner's report of input is in the catalogue, the lists and the answers of agents
// while the terminal waits for input, and nowhere after an answer, the exit or while the
// machine is away. Others cannot report it.
func TestInputIsShown(t *testing.T) {
	_, url := serve(t, host.Options{Access: newUsers("machine-laptop", "machine-other", "observer-o", "agent-bot")})
	laptop := as(t, url, "machine-laptop", "laptop", viewOptions{resume: true})
	const uri = "ahp-terminal:/ask"
	laptop.create(uri)
	laptop.output(uri, "installs\r\nname: ", 0)
	watcher := as(t, url, "observer-o", "watcher", viewOptions{subs: []string{ahp.RootURI}})
	agent := must.Get(overHTTP(t, url, "agent-bot", nil))(t)
	want := func(awaits string) {
		t.Helper()
		watcher.await("awaits "+awaits, func() bool {
			return len(watcher.root.Terminals) == 1 && watcher.root.Terminals[0].Meta.Awaits.String() == awaits
		})
		var list []struct{ Awaits string }
		use(t, agent, "list_terminals", nil, &list)
		var read struct{ Awaits string }
		use(t, agent, "read_terminal", map[string]any{"terminalId": host.IDOf(uri)}, &read)
		if len(list) != 1 || list[0].Awaits != awaits || read.Awaits != awaits {
			t.Errorf("agents are told %+v and %+v, want %q", list, read, awaits)
		}
		r, first := event(t, url, "observer-o")
		if strings.Contains(first, `"awaits":"`+awaits+`"`) != (awaits != "") || r != 200 {
			t.Errorf("the page is told %s, want %q", first, awaits)
		}
	}
	want("")
	began := time.Now().Add(-time.Second)
	laptop.says(uri, ahp.InputAwaits, began)
	want(ahp.InputAwaits)
	other := as(t, url, "machine-other", "other", viewOptions{resume: true})
	other.says(uri, ahp.InputQuiet, began)
	watcher.says(uri, ahp.InputQuiet, began)
	other.ping()
	watcher.ping()
	want(ahp.InputAwaits)
	laptop.says(uri, ahp.InputRunning, time.Now())
	want("")
	laptop.says(uri, ahp.InputSecret, time.Now())
	want(ahp.InputSecret)
	laptop.close()
	want("") // nobody knows
	back := as(t, url, "machine-laptop", "laptop", viewOptions{resume: true})
	back.create(uri)
	want(ahp.InputSecret)
	zero := int64(0)
	back.dispatch(uri, ahp.TerminalExited{ExitCode: &zero})
	back.says(uri, ahp.InputAwaits, time.Now())
	want("")
}

// Unknown words of newer machines mean an unknown state, and invalid states are ignored.
func TestInputOfStrangers(t *testing.T) {
	_, url := serve(t, host.Options{Access: newUsers("machine-laptop")})
	laptop := as(t, url, "machine-laptop", "laptop", viewOptions{resume: true, subs: []string{ahp.RootURI}})
	const uri = "ahp-terminal:/ask"
	laptop.create(uri)
	raw := func(params string) {
		t.Helper()
		must.Do(t, laptop.peer.Notify(t.Context(), ahp.MethodState, jsonRaw(params)))
		laptop.ping()
	}
	laptop.says(uri, ahp.InputAwaits, time.Now())
	laptop.await("awaits", func() bool {
		return len(laptop.root.Terminals) == 1 && laptop.root.Terminals[0].Meta.Awaits == ahp.AwaitsInput
	})
	for _, params := range []string{`{}`, `[]`, `{"channel":7}`, `{"channel":"ahp-terminal:/ask","input":"quiet","inputSince":-1}`, `{"channel":"ahp-terminal:/none","input":"quiet"}`} {
		raw(params)
	}
	if got := laptop.awaits(uri); got != ahp.InputAwaits {
		t.Errorf("nonsense made it %q", got)
	}
	raw(`{"channel":"ahp-terminal:/ask","input":"dancing","inputSince":99999999999999999}`)
	laptop.await("awaits nothing", func() bool { return laptop.root.Terminals[0].Meta.Awaits == ahp.AwaitsNothing })
}

// A question is one event, even if the machine was away for a moment, with the prompt
// from the host's text; a secret has none. A viewer who sees a terminal only from a place
// on gets no earlier prompt.
func TestInputEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStaff(true, "machine.laptop.ann", "agent.helper.ann", "agent.ci.sam")
		h := testHost(t, host.Options{Access: s, People: s})
		owner := s.of["machine.laptop.ann"]
		laptop := joined(t, h, owner, viewOptions{resume: true})
		const uri = "ahp-terminal:/ask"
		laptop.create(uri)
		laptop.output(uri, "\x1b[1mname:\x1b[m ", 0)
		a := to()
		a.Grants = []ahp.Grant{{To: "agent:ci", From: 13}} // behind the prompt
		must.Do(t, laptop.audience(uri, a))
		helper, ci := listens(t, h, s.of["agent.helper.ann"]), listens(t, h, s.of["agent.ci.sam"])
		since := time.Now()
		laptop.says(uri, ahp.InputAwaits, since)
		synctest.Wait()
		time.Sleep(2 * time.Second)
		laptop.close()
		synctest.Wait()
		laptop = joined(t, h, owner, viewOptions{resume: true})
		laptop.create(uri)
		must.Do(t, laptop.audience(uri, a))
		laptop.says(uri, ahp.InputAwaits, since)
		time.Sleep(2 * time.Second)
		laptop.says(uri, ahp.InputRunning, time.Now())
		synctest.Wait()
		laptop.output(uri, "me\r\npassword: hunter2", 13)
		laptop.says(uri, ahp.InputSecret, time.Now())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := *helper; !slices.Equal(got, []string{"awaiting_input name:", "awaiting_secret <nil>"}) {
			t.Errorf("Ann's agent heard %q", got)
		}
		if got := *ci; !slices.Equal(got, []string{"awaiting_input <nil>", "awaiting_secret <nil>"}) {
			t.Errorf("the agent that may watch from then on heard %q", got)
		}
		must.Do(t, laptop.audience(uri, to()))
		laptop.says(uri, ahp.InputRunning, time.Now())
		laptop.says(uri, ahp.InputAwaits, time.Now())
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if len(*helper) != 3 || len(*ci) != 2 {
			t.Errorf("after the end of the grant Ann's agent heard %q, the other %q", *helper, *ci)
		}
	})
}

// The owner's report of readiness is in the catalogue, the lists of agents and the page,
// and is an event; the exit ends it.
func TestReadyIsShown(t *testing.T) {
	h, url := serve(t, host.Options{Access: newUsers("machine-laptop", "observer-o", "agent-bot")})
	laptop := as(t, url, "machine-laptop", "laptop", viewOptions{resume: true})
	const uri = "ahp-terminal:/web"
	laptop.create(uri)
	watcher := as(t, url, "observer-o", "watcher", viewOptions{subs: []string{ahp.RootURI}})
	agent := must.Get(overHTTP(t, url, "agent-bot", nil))(t)
	var mu sync.Mutex
	var heard []string
	ctx, cancel := context.WithCancel(t.Context())
	ended, active := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_ = h.Agents().Stream(ctx, rights.Principal{Name: "bot", Role: rights.RoleAgent}, &events.Request{Name: events.Ready}, listener{active: sync.OnceFunc(func() { close(active) }), event: func(e events.Event) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, fmt.Sprint(e.Data["state"], ": ", e.Data["why"]))
		}})
	}()
	defer func() { cancel(); <-ended }()
	<-active
	say := func(ready, why string) {
		t.Helper()
		p := ahp.NewState(uri, ahp.InputQuiet, time.Now())
		p.SetReady(ready, time.Now(), why)
		must.Do(t, laptop.peer.SendRaw(t.Context(), ahp.AppendState(nil, p)))
	}
	want := func(ready string) {
		t.Helper()
		watcher.await("ready "+ready, func() bool {
			return len(watcher.root.Terminals) == 1 && watcher.root.Terminals[0].Meta.Ready.String() == ready
		})
		var list []struct{ Ready string }
		if use(t, agent, "list_terminals", nil, &list); len(list) != 1 || list[0].Ready != ready {
			t.Errorf("agents are told %+v, want %q", list, ready)
		}
		if _, first := event(t, url, "observer-o"); strings.Contains(first, `"ready":"`+ready+`"`) != (ready != "") {
			t.Errorf("the page is told %s, want %q", first, ready)
		}
	}
	want("")
	say(ahp.ReadyStarting, "it is ready when it listens on port 5173")
	want(ahp.ReadyStarting)
	say(ahp.ReadyYes, "it listens on port 5173")
	want(ahp.ReadyYes)
	laptop.close()
	want("") // nobody knows
	laptop = as(t, url, "machine-laptop", "laptop", viewOptions{resume: true})
	laptop.create(uri)
	want(ahp.ReadyYes)
	zero := int64(0)
	laptop.dispatch(uri, ahp.TerminalExited{ExitCode: &zero})
	want(ahp.ReadyStopped)

	laptop.create("ahp-terminal:/second")
	p := ahp.NewState("ahp-terminal:/second", ahp.InputQuiet, time.Now())
	p.SetReady(ahp.ReadyFailed, time.Now(), "not ready within 5s: no program of it listens on port 5173")
	must.Do(t, laptop.peer.SendRaw(t.Context(), ahp.AppendState(nil, p)))
	testkit.Eventually(t, testkit.Patience, "both events", func() bool { mu.Lock(); defer mu.Unlock(); return len(heard) == 2 })
	if !slices.Equal(heard, []string{"ready: it listens on port 5173", "failed: not ready within 5s: no program of it listens on port 5173"}) {
		t.Errorf("heard %q", heard)
	}
}

// listener is an events.Out.
type listener struct {
	active func()
	event  func(events.Event)
}

// Active implements events.Out.
func (l listener) Active(string, bool) error { l.active(); return nil }

// Heartbeat implements events.Out.
func (l listener) Heartbeat(string) error { return nil }

// Event implements events.Out.
func (l listener) Event(e events.Event) error { l.event(e); return nil }

// listens keeps the events of input that a principal is told of, until the test ends.
func listens(t *testing.T, h *host.Host, p rights.Principal) *[]string {
	var heard []string
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = h.Agents().Stream(ctx, p, &events.Request{Name: events.AwaitingInput}, listener{active: func() {}, event: func(e events.Event) {
			heard = append(heard, fmt.Sprint(e.Data["kind"], " ", e.Data["promptLine"]))
		}})
	}()
	synctest.Wait()
	t.Cleanup(func() { cancel(); <-ended })
	return &heard
}
