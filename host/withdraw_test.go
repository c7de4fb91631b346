package host_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/ahp"
	"tether/host"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc/wsconn"
)

// flood prints numbered lines until it is stopped, never more than 128 KiB ahead of the
// host's acknowledgement.
type flood struct {
	v    *viewer
	uri  string
	mu   sync.Mutex
	sent int // lines
	stop chan struct{}
	done chan struct{}
}

// line is a line of a flood.
func line(n int) string { return fmt.Sprintf("%08d%s\n", n, strings.Repeat(".", 55)) }

const lineBytes = 64

func startFlood(v *viewer, uri string) *flood {
	f := &flood{v: v, uri: uri, stop: make(chan struct{}), done: make(chan struct{})}
	go f.run()
	return f
}

func (f *flood) run() {
	defer close(f.done)
	for {
		select {
		case <-f.stop:
			return
		default:
		}
		f.mu.Lock()
		first := f.sent
		f.sent += 64
		f.mu.Unlock()
		var text strings.Builder
		for n := range 64 {
			text.WriteString(line(first + n))
		}
		f.v.output(f.uri, text.String(), int64(first*lineBytes))
		f.v.await("an acknowledgement", func() bool {
			select {
			case <-f.v.done:
				return true
			case <-f.stop:
				return true
			default:
			}
			return f.v.acks[f.uri] >= int64(first*lineBytes)-128<<10
		})
	}
}

// lines is how many it has begun to print.
func (f *flood) lines() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent
}

// goesOn waits until it has printed n more lines.
func (f *flood) goesOn(t *testing.T, n int) {
	t.Helper()
	from := f.lines()
	testkit.Eventually(t, patience, "more of the flood", func() bool { return f.lines() >= from+n })
}

func (f *flood) end() int {
	f.v.mu.Lock()
	close(f.stop)
	f.v.cond.Broadcast()
	f.v.mu.Unlock()
	<-f.done
	return f.lines()
}

// exact checks that a text is lines from somewhere on, without a gap, and returns the
// number behind the last.
func exact(t *testing.T, who, text string) (end int) {
	t.Helper()
	if text == "" {
		return 0
	}
	var first int
	if _, err := fmt.Sscanf(text, "%08d", &first); err != nil {
		t.Errorf("%s begins with %.80q", who, text)
		return 0
	}
	for n := first; len(text) > 0; n++ {
		want := line(n)
		if !strings.HasPrefix(text, want) && !strings.HasPrefix(want, text) {
			t.Errorf("%s: %.80q where line %d should be", who, text, n)
			return n
		}
		text = text[min(len(text), len(want)):]
		end = n + 1
	}
	return end
}

// A terminal is withdrawn in every way from every kind of viewer, in the middle of a
// flood with 20 watchers: no later output reaches those viewers, and the others get
// everything.
func TestWithdrawingUnderAFlood(t *testing.T) {
	const uri = "ahp-terminal:/flood"
	var gone, stay []string
	for n := range testkit.Load(10, 2) {
		gone, stay = append(gone, fmt.Sprint("gone", n)), append(stay, fmt.Sprint("stay", n))
	}
	token := func(name string) string { return "observer." + name + "." + name }
	withdraw := map[string]func(t *testing.T, h *host.Host, s *staff, laptop *viewer){
		"the grant": func(t *testing.T, _ *host.Host, _ *staff, laptop *viewer) {
			must.Do(t, laptop.audience(uri, to(stay...)))
		},
		"by denial": func(t *testing.T, _ *host.Host, _ *staff, laptop *viewer) {
			a := to(append(stay, "group:some")...)
			a.Denied = gone
			must.Do(t, laptop.audience(uri, a))
		},
		"the group": func(_ *testing.T, h *host.Host, s *staff, _ *viewer) {
			s.change(func(r *rights.Roster) { r.Groups["some"] = nil })
			h.LookAtPeople()
		},
		"the people": func(_ *testing.T, h *host.Host, s *staff, _ *viewer) {
			s.change(func(r *rights.Roster) { leave(r, gone) })
			h.LookAtPeople()
		},
		"the grant of the host": func(_ *testing.T, h *host.Host, s *staff, _ *viewer) {
			s.change(func(r *rights.Roster) { r.Grants = nil })
			h.LookAtPeople()
		},
		"all of it": func(t *testing.T, _ *host.Host, _ *staff, laptop *viewer) {
			must.Do(t, laptop.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: uri}, nil))
		},
		"the token": func(_ *testing.T, _ *host.Host, s *staff, _ *viewer) {
			for _, name := range gone {
				s.ends[token(name)](errors.New("revoked"))
			}
		},
	}
	for how, do := range withdraw {
		t.Run(how, func(t *testing.T) {
			s := newStaff(true, "machine.laptop.ann")
			for _, name := range slices.Concat(gone, stay) {
				s.hire(token(name))
			}
			a := to(stay...)
			s.change(func(r *rights.Roster) {
				r.Groups["some"] = []string{}
				for _, name := range gone {
					r.Groups["some"] = append(r.Groups["some"], "p-"+name)
					if how == "the grant of the host" {
						r.Grants = append(r.Grants, rights.MachineGrant{Machine: "laptop", Owner: "p-ann", To: rights.KeptGrantee(name, "p-"+name)})
					}
				}
			})
			switch how {
			case "the grant of the host":
				a.HostGrants = true
			case "the group", "by denial":
				a = to(append(stay, "group:some")...)
			default:
				a = to(append(stay, gone...)...)
			}
			h, url := serve(t, host.Options{Access: s, People: s})
			laptop := as(t, url, "machine.laptop.ann", "laptop", viewOptions{resume: true})
			p := clientTerminal(uri, "laptop")
			p.Meta = ahp.AddAudience(ahp.NewTerminalMeta("", true), a)
			must.Do(t, laptop.call(ahp.MethodCreateTerminal, p, nil))
			watchers := map[string]*viewer{}
			for _, name := range slices.Concat(gone, stay) {
				v := as(t, url, token(name), name, viewOptions{})
				v.forget()
				must.Do(t, v.subscribe(uri))
				watchers[name] = v
			}
			f := startFlood(laptop, uri)
			f.goesOn(t, 2048)
			do(t, h, s, laptop)
			if how == "the token" {
				for _, name := range gone {
					<-watchers[name].done
				}
			}
			after := f.lines()
			if how != "all of it" {
				f.goesOn(t, 4096)
			}
			end := f.end()
			for _, name := range stay {
				v := watchers[name]
				if how == "all of it" {
					v.await("the end", func() bool { return v.states[uri].Lifecycle.Exited() })
				} else {
					v.awaitText(uri, line(end-1))
				}
			}
			for name, v := range watchers {
				got := exact(t, name, v.textOf(uri))
				if (slices.Contains(gone, name) || how == "all of it") && got > after {
					t.Errorf("%s has line %d; it was withdrawn at line %d at the latest", name, got, after)
				}
				if slices.Contains(gone, name) && how != "the token" {
					v.await("the end", func() bool { return v.states[uri].Lifecycle.Exited() })
					if err := v.subscribe(uri); code(err) != int64(ahp.CodeNotFound) {
						t.Errorf("%s subscribes again: %v", name, err)
					}
				}
			}
		})
	}
}

// leave lets people be no more.
func leave(r *rights.Roster, names []string) {
	for _, name := range names {
		delete(r.People, "p-"+name)
	}
}

// Withdrawing ends agents' and pages' waits, too, and the machine is told who may watch
// and who does.
func TestWithdrawing(t *testing.T) {
	s := newStaff(true, "machine.laptop.ann", "observer.ann.ann", "observer.bob.bob", "agent.ci.bob")
	h, url := serve(t, host.Options{Access: s, People: s})
	laptop := as(t, url, "machine.laptop.ann", "laptop", viewOptions{resume: true})
	p := clientTerminal(theLent.uri, "laptop")
	p.Meta = ahp.AddAudience(nil, to("bob", "agent:ci", "nobody"))
	must.Do(t, laptop.call(ahp.MethodCreateTerminal, p, nil))
	laptop.output(theLent.uri, "hello\r\n", 0)
	told := func(what string, ok func(ahp.WatchersParams) bool) {
		t.Helper()
		laptop.await(what, func() bool {
			all := laptop.watchers[theLent.uri]
			return len(all) > 0 && ok(all[len(all)-1])
		})
	}
	told("who may watch", func(p ahp.WatchersParams) bool {
		return slices.Equal(p.May, []string{"ann", "bob", "agent:ci"}) && slices.Equal(p.Refused, []string{"nobody"}) && len(p.Watching) == 0
	})
	bob := as(t, url, "observer.bob.bob", "bob", viewOptions{subs: []string{ahp.RootURI, theLent.uri}})
	updated := make(chan string, 10)
	agent := must.Get(overLines(t, url, "agent.ci.bob", &sdk.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { updated <- r.Params.URI }}))(t)
	must.Do(t, agent.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "terminal:///" + theLent.id}))
	told("who watches", func(p ahp.WatchersParams) bool {
		return len(p.Watching) == 2 && p.Watching[0].Who == "ci" && p.Watching[0].Kind == ahp.WatcherAgent && p.Watching[1].Who == "bob" && p.Watching[1].Kind == ahp.WatcherPerson
	})
	laptop.output(theLent.uri, "more\r\n", 7)
	<-updated
	waits := make(chan *sdk.CallToolResult)
	go func() {
		r, _ := agent.CallTool(context.Background(), &sdk.CallToolParams{Name: "wait_terminal", Arguments: map[string]any{"terminalId": theLent.id, "pattern": "never", "timeoutMs": 600000}})
		waits <- r
	}()
	stream := eventStream(t, url, "agent.ci.bob", theLent.id)
	if got := <-stream; !strings.Contains(got, "active") {
		t.Errorf("the stream begins with %s", got)
	}
	testkit.Eventually(t, patience, "the wait", func() bool { return h.Waiting(theLent.uri) >= 2 })
	r, _ := ask(t, url, visit{path: "/terminals/" + theLent.id + ".txt", token: "observer.ann.ann"})
	if r.StatusCode != 200 {
		t.Fatal(r.StatusCode)
	}
	laptop.await("who has looked for a moment", func() bool {
		return slices.ContainsFunc(laptop.watchers[theLent.uri], func(p ahp.WatchersParams) bool {
			return slices.ContainsFunc(p.Watching, func(w ahp.Watcher) bool { return w.Who == "ann" })
		})
	})
	told("that it is over", func(p ahp.WatchersParams) bool { return len(p.Watching) == 2 })
	must.Do(t, laptop.audience(theLent.uri, to()))
	if r := <-waits; r == nil || !r.IsError {
		t.Errorf("the wait has ended with %+v", r)
	}
	bob.await("the terminal is gone", func() bool { return len(bob.root.Terminals) == 0 && bob.states[theLent.uri].Lifecycle.Exited() })
	told("that nobody watches", func(p ahp.WatchersParams) bool { return slices.Equal(p.May, []string{"ann"}) && len(p.Watching) == 0 })
	laptop.output(theLent.uri, "secret\r\n", 13)
	laptop.ping()
	testkit.Eventually(t, patience, "no agent follows", func() bool { return h.Waiting(theLent.uri) == 0 })
	for text := range stream { // it ends
		if strings.Contains(text, "secret") {
			t.Errorf("an agent was told %s", text)
		}
		if strings.Contains(text, `"id":2`) || strings.Contains(text, "terminated") {
			break
		}
	}
	bob.ping()
	all, _ := bob.received()
	for _, e := range all {
		if strings.Contains(string(e.Action), "secret") {
			t.Errorf("bob was sent %s", e.Action)
		}
	}
	if err := laptop.audience(theLent.uri, to("bob", "nobody", "group:none", "agent:bob")); code(err) != -32602 || !strings.Contains(fmt.Sprint(err), "nobody here") {
		t.Errorf("names that nobody has: %v", err)
	}
	told("that nothing was changed", func(p ahp.WatchersParams) bool { return slices.Equal(p.May, []string{"ann"}) })
	if err := laptop.audience("", to("bob", "agent:ci")); err != nil {
		t.Errorf("to ask for names: %v", err)
	}
}

// With a position, only output from there on is shown, at every door.
func TestGrantsFromNowOn(t *testing.T) {
	s := newStaff(true, "machine.laptop.ann", "observer.bob.bob", "agent.ci.bob")
	_, url := serve(t, host.Options{Access: s, People: s})
	laptop := as(t, url, "machine.laptop.ann", "laptop", viewOptions{resume: true})
	laptop.create(theLent.uri)
	const before, later = "old secret\r\nmain.go:1:1: old\r\n", "new text\r\n"
	laptop.dispatch(theLent.uri, commandExecuted(1))
	laptop.output(theLent.uri, before, 0)
	from := int64(len(before))
	must.Do(t, laptop.audience(theLent.uri, ahp.Audience{Grants: []ahp.Grant{{To: "bob", From: from}, {To: "agent:ci", From: from}}}))
	laptop.output(theLent.uri, later, from)
	laptop.ping()
	bob := as(t, url, "observer.bob.bob", "bob", viewOptions{subs: []string{theLent.uri}})
	if got := bob.textOf(theLent.uri); got != later {
		t.Errorf("the snapshot is %q", got)
	}
	laptop.output(theLent.uri, later, from+int64(len(later)))
	bob.awaitText(theLent.uri, later+later)
	_, last := bob.received()
	bob.close()
	again := as(t, url, "observer.bob.bob", "bob", viewOptions{noInit: true})
	var r ahp.ReconnectResult
	must.Do(t, again.call(ahp.MethodReconnect, ahp.ReconnectParams{Channel: ahp.RootURI, ClientID: "bob", LastSeenServerSeq: last - 3, Subscriptions: []string{theLent.uri}}, &r))
	agent := must.Get(overLines(t, url, "agent.ci.bob", nil))(t)
	v := &visitor{t: t, url: url, token: "observer.bob.bob", mcp: agent}
	answers := map[string]string{"reconnect": fmt.Sprint(r)}
	for _, x := range r.Snapshots {
		answers["snapshot"] = string(x.State)
	}
	for _, door := range []string{"MCP list_terminals", "MCP read_terminal", "MCP read_terminal digest", "MCP wait_terminal", "MCP problems", "MCP resources/read", "page text", "page problems"} {
		answers[door] = doors[door](v, theLent)
	}
	_, answers["page events"] = event(t, url, v.token)
	for _, format := range []string{"screen", "text"} {
		answers[format] = v.tool("read_terminal", map[string]any{"terminalId": theLent.id, "format": format, "since": 0})
	}
	for door, got := range answers {
		if strings.Contains(got, "old secret") || strings.Contains(got, `: old`) || strings.Contains(got, `"old"`) || strings.Contains(got, `"make"`) {
			t.Errorf("%s shows what is older: %s", door, got)
		}
	}
	for _, door := range []string{"MCP read_terminal", "page text", "MCP resources/read", "screen"} {
		if !strings.Contains(answers[door], "new text") {
			t.Errorf("%s does not show what is newer: %s", door, answers[door])
		}
	}
	// A host that was started anew does not have the text yet: until then the grant shows
	// nothing.
	must.Do(t, laptop.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: theLent.uri}, nil))
	p := clientTerminal("ahp-terminal:/again", "laptop")
	p.Meta = ahp.AddAudience(nil, ahp.Audience{Grants: []ahp.Grant{{To: "bob", From: from}}})
	must.Do(t, laptop.call(ahp.MethodCreateTerminal, p, nil))
	laptop.output("ahp-terminal:/again", before[:20], 0)
	laptop.ping()
	if err := again.subscribe("ahp-terminal:/again"); code(err) != int64(ahp.CodeNotFound) {
		t.Errorf("before the text: %v", err)
	}
	laptop.output("ahp-terminal:/again", before[20:]+later, 20)
	laptop.ping()
	must.Do(t, again.subscribe("ahp-terminal:/again"))
	if got := again.textOf("ahp-terminal:/again"); got != later {
		t.Errorf("it shows %q", got)
	}
}

// When audiences are put in force everybody begins anew, machines by initializing, so
// that they see the marker.
func TestSwitchingAudiences(t *testing.T) {
	s := newStaff(false, "machine.laptop.ann", "observer.ann.ann", "observer.bob.bob")
	h, url := serve(t, host.Options{Access: s, People: s})
	laptop := as(t, url, "machine.laptop.ann", "laptop", viewOptions{resume: true})
	if m, _ := ahp.FindClientTerminals(laptop.result); m.KeepsAudiences() {
		t.Error("the marker says that audiences are in force")
	}
	laptop.create(theLent.uri)
	laptop.output(theLent.uri, "hello", 0)
	bob := as(t, url, "observer.bob.bob", "bob", viewOptions{subs: []string{ahp.RootURI, theLent.uri}})
	bob.awaitText(theLent.uri, "hello")
	status, first := event(t, url, "observer.bob.bob")
	if status != 200 || !strings.Contains(first, theLent.id) {
		t.Errorf("%d %s", status, first)
	}
	s.change(func(r *rights.Roster) { r.On = true })
	h.LookAtPeople()
	<-bob.done
	<-laptop.done
	again := as(t, url, "machine.laptop.ann", "laptop", viewOptions{noInit: true})
	if err := again.call(ahp.MethodReconnect, ahp.ReconnectParams{Channel: ahp.RootURI, ClientID: "laptop"}, nil); code(err) != int64(ahp.CodeNotFound) {
		t.Errorf("a machine reconnects without seeing the marker: %v", err)
	}
	again.initialize(viewOptions{resume: true})
	if m, _ := ahp.FindClientTerminals(again.result); !m.KeepsAudiences() || m.Audiences.Owner != "ann" {
		t.Errorf("the marker is %+v", m)
	}
	again.create(theLent.uri)
	for token, want := range map[string]int{"observer.bob.bob": 0, "observer.ann.ann": 1} {
		v := as(t, url, token, "again"+token, viewOptions{subs: []string{ahp.RootURI}})
		if got := len(v.catalogue().Terminals); got != want {
			t.Errorf("%s sees %d terminals", token, got)
		}
	}
	// A terminal for some does not become one for all because audiences end: the machine
	// decides, and announces it again or does not.
	s.change(func(r *rights.Roster) { r.On = false })
	h.LookAtPeople()
	<-again.done
	bob = as(t, url, "observer.bob.bob", "bob", viewOptions{subs: []string{ahp.RootURI}})
	if got := len(bob.catalogue().Terminals); got != 0 {
		t.Errorf("bob sees %d terminals before the machine has come again", got)
	}
	laptop = as(t, url, "machine.laptop.ann", "laptop", viewOptions{resume: true})
	laptop.create(theLent.uri)
	bob.await("the terminal", func() bool { return len(bob.root.Terminals) == 1 })
}

// eventStream listens for lines of a terminal, and returns its messages.
func eventStream(t *testing.T, url, token, id string) <-chan string {
	t.Helper()
	conn := must.Get(wsconn.Dial(t.Context(), url+"/mcp", wsconn.Options{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}}))(t)
	t.Cleanup(func() { conn.Close() })
	for _, line := range []string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"events/stream","params":{"name":"terminal.line","cursor":null,"arguments":{"terminalId":%q,"pattern":"secret"}}}`, id)} {
		must.Do(t, conn.Send(t.Context(), []byte(line)))
	}
	told := make(chan string, 100)
	go func() {
		defer close(told)
		for {
			got, err := conn.Recv(context.Background())
			if err != nil {
				return
			}
			if text := string(got); strings.Contains(text, `"id":2`) || strings.Contains(text, "notifications/events") {
				told <- text
			}
			conn.Free()
		}
	}()
	return told
}
