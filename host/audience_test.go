package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/ahp"
	"tether/host"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc/wsconn"
)

// staff knows people and tokens: a token's text describes its principal.
type staff struct {
	mu     sync.Mutex
	roster *rights.Roster
	of     map[string]rights.Principal // by token
	ends   map[string]context.CancelCauseFunc
}

// newStaff is a company: each of the people has the id p-NAME, and tokens
// "role.name.owner".
func newStaff(on bool, tokens ...string) *staff {
	s := &staff{roster: &rights.Roster{On: on, People: map[string]string{}, Groups: map[string][]string{}}, of: map[string]rights.Principal{}, ends: map[string]context.CancelCauseFunc{}}
	for _, token := range tokens {
		s.hire(token)
	}
	return s
}

// hire registers a token, and the person who owns it.
func (s *staff) hire(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := strings.Split(token, ".")
	p := rights.Principal{Role: rights.Role(f[0]), Name: f[1]}
	if f[0] == "guest" {
		p = rights.Principal{Role: rights.RoleObserver, Guest: "ahp-terminal:/" + f[1]}
	} else if f[2] != "" {
		p.Owner = "p-" + f[2]
	}
	p.Live, s.ends[token] = context.WithCancelCause(context.Background())
	s.of[token] = p
	if p.Owner != "" {
		s.changeLocked(func(r *rights.Roster) { r.People[p.Owner] = f[2] })
	}
}

// change makes another roster.
func (s *staff) change(f func(*rights.Roster)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changeLocked(f)
}

func (s *staff) changeLocked(f func(*rights.Roster)) {
	next := &rights.Roster{On: s.roster.On, People: map[string]string{}, Groups: map[string][]string{}, Grants: slices.Clone(s.roster.Grants), Withdrawn: maps.Clone(s.roster.Withdrawn)}
	for id, name := range s.roster.People {
		next.People[id] = name
	}
	for name, members := range s.roster.Groups {
		next.Groups[name] = slices.Clone(members)
	}
	f(next)
	s.roster = next
}

// Look implements rights.People.
func (s *staff) Look() *rights.Roster {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.roster
}

// Agent implements rights.People.
func (s *staff) Agent(name string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.of {
		if p.Name == name && (p.Role == rights.RoleAgent || p.Role == rights.RoleOperator) {
			return p.Owner, true
		}
	}
	return "", false
}

// Withdraw implements rights.People.
func (s *staff) Withdraw(terminal, _ string, g rights.Grantee) error {
	s.change(func(r *rights.Roster) {
		if r.Withdrawn == nil {
			r.Withdrawn = map[string][]rights.Grantee{}
		}
		r.Withdrawn[terminal] = append(slices.Clone(r.Withdrawn[terminal]), g)
	})
	return nil
}

// Authenticate implements rights.Authenticator.
func (s *staff) Authenticate(token string) (rights.Principal, bool) { return s.Known(token) }

// Known implements rights.Authenticator.
func (s *staff) Known(token string) (rights.Principal, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.of[token]
	return p, ok && p.Live.Err() == nil
}

// audience sets a terminal's audience.
func (v *viewer) audience(uri string, a ahp.Audience) error {
	return v.call(ahp.MethodAudience, ahp.AudienceParams{Channel: uri, Audience: a}, nil)
}

func to(names ...string) (a ahp.Audience) {
	for _, name := range names {
		a.Grants = append(a.Grants, ahp.Grant{To: name})
	}
	return a
}

// target is a terminal by its names.
type target struct{ uri, id, name string }

// theLent is lent by Ann's laptop; theNone is not there.
var (
	theLent = target{"ahp-terminal:/lent", host.IDOf("ahp-terminal:/lent"), "laptop/build"}
	theNone = target{"ahp-terminal:/none", host.IDOf("ahp-terminal:/none"), "laptop/absent"}
)

// plain is an answer in which the names of the target are the same for all.
func (x target) plain(text string) string {
	return strings.NewReplacer(x.uri, "URI", x.id, "ID", x.name, "NAME").Replace(text)
}

// visitor is a principal at all doors.
type visitor struct {
	t     *testing.T
	h     *host.Host
	url   string
	token string
	ahp   *viewer
	mcp   *sdk.ClientSession // nil: no way in
	lent  *viewer            // the machine
	p     rights.Principal
	round string
}

// doors are all ways to a terminal, by name, with the answers about a target. For an
// invisible target the answer is that for a missing one.
var doors = map[string]func(v *visitor, x target) string{
	"AHP catalogue": func(v *visitor, x target) string {
		w := as(v.t, v.url, v.token, "cat-"+v.token+v.round, viewOptions{subs: []string{ahp.RootURI}})
		defer w.close()
		return fmt.Sprint(strings.Contains(fmt.Sprint(w.catalogue().Terminals), x.uri))
	},
	"AHP catalogue awaits": func(v *visitor, x target) string {
		w := as(v.t, v.url, v.token, "awaits-"+v.token+v.round, viewOptions{subs: []string{ahp.RootURI}})
		defer w.close()
		return fmt.Sprint(w.awaits(x.uri))
	},
	"AHP initialize": func(v *visitor, x target) string {
		w := as(v.t, v.url, v.token, "init-"+v.token+v.round, viewOptions{subs: []string{x.uri}})
		defer w.close()
		return x.plain(fmt.Sprint(len(w.result.Snapshots)))
	},
	"AHP reconnect": func(v *visitor, x target) string {
		id := "re-" + v.token + v.round
		as(v.t, v.url, v.token, id, viewOptions{}).close()
		w := as(v.t, v.url, v.token, id, viewOptions{noInit: true})
		defer w.close()
		var r ahp.ReconnectResult
		err := w.call(ahp.MethodReconnect, ahp.ReconnectParams{Channel: ahp.RootURI, ClientID: id, Subscriptions: []string{x.uri}}, &r)
		return x.plain(fmt.Sprint(err, r.Missing, len(r.Snapshots)))
	},
	"AHP subscribe": func(v *visitor, x target) string {
		err := v.ahp.subscribe(x.uri)
		if err == nil {
			_ = v.ahp.peer.Notify(context.Background(), ahp.MethodUnsubscribe, ahp.UnsubscribeParams{Channel: x.uri})
		}
		return x.plain(fmt.Sprint(err))
	},
	"AHP dispatch": func(v *visitor, x target) string {
		return x.plain(v.ahp.rejected(x.uri, ahp.TerminalTitleChanged{Title: "forged"}))
	},
	"AHP broken dispatch": func(v *visitor, x target) string {
		e := v.ahp.answer(v.ahp.dispatchRaw(x.uri, []byte(`{"type":"terminal/output"}`)))
		return x.plain(fmt.Sprint(*e.RejectionReason))
	},
	"AHP dispose": func(v *visitor, x target) string {
		return x.plain(fmt.Sprint(v.ahp.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: x.uri}, nil)))
	},
	"AHP claim of a session": func(v *visitor, x target) string { // that names a terminal where a session belongs
		return x.plain(fmt.Sprint(v.ahp.call(ahp.MethodCreateTerminal, ahp.CreateTerminalParams{Channel: "ahp-terminal:/new", Claim: ahp.Claim{Kind: ahp.ClaimSession, Session: x.uri}}, nil)))
	},
	"AHP park": func(v *visitor, x target) string {
		return x.plain(fmt.Sprint(v.ahp.call(ahp.MethodPark, ahp.ParkParams{Channel: x.uri}, nil)))
	},
	"AHP parked": func(v *visitor, x target) string {
		var r ahp.ParkedResult
		err := v.ahp.call(ahp.MethodParked, struct{}{}, &r)
		return fmt.Sprint(err, slices.ContainsFunc(r.Terminals, func(one ahp.Parked) bool {
			return one.Channel == x.uri || one.ID == x.id || one.Machine+"/"+one.Name == x.name
		}))
	},
	"AHP lentPorts": func(v *visitor, x target) string {
		return x.plain(fmt.Sprint(v.ahp.call(ahp.MethodLentPorts, ahp.LentPortsParams{Channel: x.uri, Ports: []ahp.LentPort{}}, nil)))
	},
	"port": func(v *visitor, x target) string {
		_, err := v.h.Ports().Way(v.p, x.uri, 3000)
		return fmt.Sprint(err)
	},
	"MCP fetch_page": func(v *visitor, x target) string {
		return x.plain(v.tool("fetch_page", map[string]any{"terminalId": x.id, "port": 3000}))
	},
	"AHP audience": func(v *visitor, x target) string { return x.plain(fmt.Sprint(v.ahp.audience(x.uri, to()))) },
	"AHP share": func(v *visitor, x target) string {
		return x.plain(fmt.Sprint(v.ahp.shares(x.uri, "matrixid", false, time.Now().Add(time.Hour))))
	},
	"MCP list_terminals": func(v *visitor, x target) string {
		return fmt.Sprint(strings.Contains(v.tool("list_terminals", map[string]any{}), x.id))
	},
	"MCP list_terminals awaits": func(v *visitor, x target) string {
		_, rest, ok := strings.Cut(v.tool("list_terminals", map[string]any{}), x.id)
		one, _, _ := strings.Cut(rest, "}")
		return fmt.Sprint(ok, strings.Contains(one, `"awaits":"awaiting_input"`))
	},
	"MCP read_terminal awaits": func(v *visitor, x target) string {
		return fmt.Sprint(strings.Contains(v.tool("read_terminal", map[string]any{"terminalId": x.id}), `"awaits":"awaiting_input"`))
	},
	"MCP read_terminal": func(v *visitor, x target) string {
		return x.plain(v.tool("read_terminal", map[string]any{"terminalId": x.id}))
	},
	"MCP read by name": func(v *visitor, x target) string {
		return x.plain(v.tool("read_terminal", map[string]any{"terminalId": x.name}))
	},
	"MCP read_terminal digest": func(v *visitor, x target) string {
		return x.plain(v.tool("read_terminal", map[string]any{"terminalId": x.id, "format": "digest"}))
	},
	"MCP wait_terminal": func(v *visitor, x target) string {
		return x.plain(v.tool("wait_terminal", map[string]any{"terminalId": x.id, "pattern": "hello", "timeoutMs": 100}))
	},
	"MCP problems": func(v *visitor, x target) string {
		return x.plain(v.tool("problems", map[string]any{"terminalId": x.id}))
	},
	"MCP resources/list": func(v *visitor, x target) string {
		if v.mcp == nil {
			return "no way in"
		}
		r, err := v.mcp.ListResources(v.t.Context(), nil)
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(slices.ContainsFunc(r.Resources, func(r *sdk.Resource) bool { return strings.Contains(r.URI, x.id) }))
	},
	"MCP resources/read": func(v *visitor, x target) string {
		if v.mcp == nil {
			return "no way in"
		}
		r, err := v.mcp.ReadResource(v.t.Context(), &sdk.ReadResourceParams{URI: "terminal:///" + x.id})
		if err != nil {
			return x.plain(err.Error())
		}
		return r.Contents[0].Text
	},
	"MCP resources/subscribe": func(v *visitor, x target) string {
		if v.mcp == nil {
			return "no way in"
		}
		err := v.mcp.Subscribe(v.t.Context(), &sdk.SubscribeParams{URI: "terminal:///" + x.id})
		if err == nil {
			err = v.mcp.Unsubscribe(v.t.Context(), &sdk.UnsubscribeParams{URI: "terminal:///" + x.id})
		}
		return x.plain(fmt.Sprint(err))
	},
	"MCP events/poll":         func(v *visitor, x target) string { return x.plain(v.event("events/poll", x.id)) },
	"MCP events/poll by name": func(v *visitor, x target) string { return x.plain(v.event("events/poll", x.name)) },
	"MCP events/stream":       func(v *visitor, x target) string { return x.plain(v.event("events/stream", x.id)) },
	"MCP events of input": func(v *visitor, x target) string {
		return x.plain(v.eventOf("events/stream", "terminal.awaiting_input", fmt.Sprintf(`{"terminalId":%q}`, x.id)))
	},
	"page events": func(v *visitor, x target) string {
		r, first := event(v.t, v.url, v.token)
		return fmt.Sprint(r, strings.Contains(first, x.id))
	},
	"page awaits": func(v *visitor, x target) string {
		r, first := event(v.t, v.url, v.token)
		_, rest, ok := strings.Cut(first, x.id)
		one, _, _ := strings.Cut(rest, "}")
		return fmt.Sprint(r, ok, strings.Contains(one, `"awaits":"awaiting_input"`))
	},
	"page without scripts": func(v *visitor, x target) string {
		r, body := ask(v.t, v.url, visit{path: "/plain", token: v.token})
		return fmt.Sprint(r.StatusCode, strings.Contains(body, x.id))
	},
	"page text": func(v *visitor, x target) string {
		r, body := ask(v.t, v.url, visit{path: "/terminals/" + x.id + ".txt", token: v.token})
		return x.plain(fmt.Sprint(r.StatusCode, body))
	},
	"page state": func(v *visitor, x target) string {
		r, body := ask(v.t, v.url, visit{path: "/terminals/" + x.id + "/state", token: v.token})
		return x.plain(fmt.Sprint(r.StatusCode, body))
	},
	"page problems": func(v *visitor, x target) string {
		r, body := ask(v.t, v.url, visit{path: "/terminals/" + x.id + "/problems", token: v.token})
		return x.plain(fmt.Sprint(r.StatusCode, body))
	},
	"shells": func(v *visitor, x target) string {
		r, body := ask(v.t, v.url, visit{path: "/shells", token: v.token})
		return x.plain(fmt.Sprint(r.StatusCode, strings.Contains(body, x.id)))
	},
	"lent": func(v *visitor, x target) string { // names for administrators, of all terminals: see TestAdministratorsSeeNames
		r, body := ask(v.t, v.url, visit{path: "/lent", token: v.token})
		if r.StatusCode == http.StatusOK {
			body = ""
		}
		return x.plain(fmt.Sprint(r.StatusCode, body))
	},
	"end a grant": func(v *visitor, x target) string {
		r, body := ask(v.t, v.url, visit{method: http.MethodDelete, path: "/lent/" + x.id + "/nobody", token: v.token})
		return x.plain(fmt.Sprint(r.StatusCode, body))
	},
	"end a shell": func(v *visitor, x target) string {
		r, body := ask(v.t, v.url, visit{method: http.MethodDelete, path: "/shells/" + x.id, token: v.token})
		return x.plain(fmt.Sprint(r.StatusCode, body))
	},
}

// event is the first message that answers a request about events of a terminal.
func (v *visitor) event(method, id string) string {
	return v.eventOf(method, "terminal.line", fmt.Sprintf(`{"terminalId":%q,"pattern":"x"}`, id))
}

func (v *visitor) eventOf(method, kind, args string) string {
	if v.mcp == nil {
		return "no way in"
	}
	conn := must.Get(wsconn.Dial(v.t.Context(), v.url+"/mcp", wsconn.Options{HTTPHeader: http.Header{"Authorization": {"Bearer " + v.token}}}))(v.t)
	defer conn.Close()
	for _, line := range []string{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":%q,"params":{"name":%q,"cursor":null,"arguments":%s}}`, method, kind, args)} {
		must.Do(v.t, conn.Send(v.t.Context(), []byte(line)))
	}
	for {
		got, err := conn.Recv(v.t.Context())
		if err != nil {
			return err.Error()
		}
		if text := string(got); strings.Contains(text, `"id":2`) || strings.Contains(text, "notifications/events") {
			return text
		}
		conn.Free()
	}
}

// tool is a tool's answer.
func (v *visitor) tool(name string, args map[string]any) string {
	if v.mcp == nil {
		return "no way in"
	}
	r, err := v.mcp.CallTool(v.t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return err.Error()
	}
	return r.Content[0].(*sdk.TextContent).Text
}

// event is the status and the first event of the page's list.
func event(t *testing.T, url, token string) (status int, first string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := must.Get(http.NewRequestWithContext(ctx, http.MethodGet, "http"+strings.TrimPrefix(url, "ws")+"/events", nil))(t)
	r.Header.Set("Authorization", "Bearer "+token)
	answer := must.Get(http.DefaultClient.Do(r))(t)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return answer.StatusCode, ""
	}
	buf := make([]byte, 64<<10)
	for !strings.Contains(first, "\n\n") {
		n, err := answer.Body.Read(buf)
		first += string(buf[:n])
		must.Do(t, err)
	}
	return answer.StatusCode, first
}

// Through any door, before, during and after a grant: the terminal exists for its
// audience, and for all others every answer is that for a missing one.
func TestTheAudienceAtEachDoor(t *testing.T) { audienceAtEachDoor(t, false) }

// The same while the terminal is parked; for AHP it is not there at all.
func TestTheAudienceOfAParkedTerminalAtEachDoor(t *testing.T) { audienceAtEachDoor(t, true) }

func audienceAtEachDoor(t *testing.T, parked bool) {
	testkit.NotOnWine(t, testkit.Slow)
	const always, granted, never = "always", "granted", "never"
	roles := map[string]string{
		"observer.ann.ann": always, "agent.helper.ann": always, "operator.doer.ann": always, "machine.laptop.ann": always, "guest.lent.": always,
		"observer.bob.bob": granted, "observer.gus.gus": granted, "agent.ci.sam": granted, "observer.hal.hal": granted, "admin.max.max": granted,
		"observer.fay.fay": never, "observer.sam.sam": never, "agent.bobbot.bob": never, "observer.dan.dan": never, "agent.mole.ann": never, "guest.other.": never,
		"machine.desk.sam": never, "machine.box.ann": never, "admin.root.": never,
	}
	tokens := []string{}
	for token := range roles {
		tokens = append(tokens, token)
	}
	s := newStaff(true, tokens...)
	s.change(func(r *rights.Roster) {
		r.Groups["web"] = []string{"p-gus", "p-dan"}
		r.Grants = []rights.MachineGrant{{Machine: "laptop", Owner: "p-ann", To: rights.KeptGrantee("hal", "p-hal")}, {Machine: "desk", Owner: "p-sam", To: rights.KeptGrantee("fay", "p-fay")}}
	})
	o := host.Options{Access: s, People: s, Sessions: true, Runner: &fakeRunner{procs: map[string]*fakeProcess{}}}
	if parked {
		o.Grace, o.Park = time.Millisecond, time.Hour
	}
	h, url := serve(t, o)
	lend := func() *viewer {
		laptop := as(t, url, "machine.laptop.ann", "laptop", viewOptions{resume: true})
		p := clientTerminal(theLent.uri, "laptop")
		p.Meta = ahp.AddPark(nil, ahp.NewPark(time.Hour, -1))
		must.Do(t, laptop.call(ahp.MethodCreateTerminal, p, nil))
		return laptop
	}
	laptop := lend()
	laptop.output(theLent.uri, "hello\r\nmain.go:3:1: broken\r\n", 0)
	laptop.says(theLent.uri, ahp.InputAwaits, time.Now())
	denied := []string{"dan", "agent:mole"}
	for _, a := range []ahp.Audience{to("fay"), {Denied: denied}} {
		must.Do(t, laptop.audience(theLent.uri, a))
	}
	during := to("bob", "group:web", "agent:ci", "max", "dan")
	during.HostGrants, during.Denied = true, denied
	cells := 0
	for _, phase := range []struct {
		name string
		a    ahp.Audience
	}{{"before", ahp.Audience{Denied: denied}}, {"during", during}, {"after", ahp.Audience{Denied: denied}}} {
		if parked && phase.name != "before" {
			laptop = lend() // it is back
		}
		must.Do(t, laptop.audience(theLent.uri, phase.a))
		if parked {
			laptop.close()
			awaitParked(t, h, 1)
		}
		for token, when := range roles {
			v := &visitor{t: t, h: h, url: url, token: token, lent: laptop, round: phase.name, p: s.of[token]}
			v.ahp = as(t, url, token, "at-"+token+phase.name, viewOptions{})
			v.mcp, _ = overLines(t, url, token, nil)
			for door, open := range doors {
				cells++
				want := when == always || when == granted && phase.name == "during"
				role, _, _ := strings.Cut(token, ".")
				admin := role == "admin"
				switch kind, _, _ := strings.Cut(door, " "); {
				case door == "port":
					want = want && role != "guest"
				case door == "AHP park" || door == "AHP lentPorts":
					want = false // it is another client's
				case parked && door == "MCP read_terminal awaits":
					want = false // nobody knows while the machine is away
				case door == "AHP parked":
					want = want && parked
				case kind == "AHP" && parked:
					want = false
				case door == "MCP resources/subscribe": // answered alike to all: see TestWithdrawing
					want = false
				case kind == "MCP":
					want = want && role != "machine" && role != "guest"
				case kind == "page":
					want = want && (role == "observer" || role == "guest" || admin)
				case kind == "shells" || kind == "lent" || kind == "end" || door == "AHP claim of a session" || door == "AHP audience" || door == "AHP share":
					want = false // it is neither a shell nor a session, and another owner's in any case
				}
				if admin && door == "AHP dispose" && parked {
					continue // it would be gone: see TestTheEndOfAParkedTerminal
				}
				if admin && door == "AHP dispose" { // administrators know that there is something to dispose of
					scrap := target{uri: "ahp-terminal:/scrap", id: "none", name: "none"}
					laptop.create(scrap.uri)
					if got := open(v, scrap); got != "<nil>" {
						t.Errorf("%s, %s, %s: %s", phase.name, token, door, got)
					}
					continue
				}
				known, unknown := open(v, theLent), open(v, theNone)
				if got := known != unknown; got != want {
					t.Errorf("%s, %s, %s: told %t, want %t\n of it: %.200q\n of none: %.200q", phase.name, token, door, got, want, known, unknown)
				}
			}
			v.ahp.close()
			if v.mcp != nil {
				v.mcp.Close()
			}
		}
	}
	if cells < 500 {
		t.Errorf("%d cells", cells)
	}
	t.Logf("%d cells", cells)
}

// Administrators see names, owners and sizes of all terminals, but no output, and they
// can end grants.
func TestAdministratorsSeeNames(t *testing.T) {
	s := newStaff(true, "machine.laptop.ann", "observer.bob.bob", "admin.root.", "observer.ann.ann")
	_, url := serve(t, host.Options{Access: s, People: s})
	laptop := as(t, url, "machine.laptop.ann", "laptop", viewOptions{resume: true})
	laptop.create(theLent.uri)
	laptop.output(theLent.uri, "canary text", 0)
	laptop.dispatch(theLent.uri, ahp.TerminalTitleChanged{Title: "canary title"})
	laptop.dispatch(theLent.uri, ahp.TerminalCommandExecuted{CommandID: "1", CommandLine: "canary line", Timestamp: 1})
	must.Do(t, laptop.audience(theLent.uri, to("bob")))
	bob := as(t, url, "observer.bob.bob", "bob", viewOptions{subs: []string{theLent.uri}})
	lent := func() (one host.Lent) {
		r, body := ask(t, url, visit{path: "/lent", token: "admin.root."})
		var got struct{ Terminals []host.Lent }
		if err := json.Unmarshal([]byte(body), &got); err != nil || r.StatusCode != http.StatusOK || len(got.Terminals) != 1 || strings.Contains(body, "canary") {
			t.Fatalf("%d %s, %v", r.StatusCode, body, err)
		}
		return got.Terminals[0]
	}
	if one := lent(); one.ID != theLent.id || one.Machine != "laptop" || one.Owner != "ann" || one.Name != "build" || one.Bytes != 11 || one.Watching != 1 || !slices.Equal(one.May, []string{"ann", "bob"}) {
		t.Errorf("%+v", one)
	}
	for _, token := range []string{"observer.ann.ann", "machine.laptop.ann", "observer.bob.bob"} {
		if r, _ := ask(t, url, visit{path: "/lent", token: token}); r.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", token, r.StatusCode)
		}
	}
	for name, want := range map[string]int{"ann": http.StatusNotFound, "nobody": http.StatusNotFound, "bob": http.StatusNoContent} {
		if r, _ := ask(t, url, visit{method: http.MethodDelete, path: "/lent/" + theLent.id + "/" + name, token: "admin.root."}); r.StatusCode != want {
			t.Errorf("ending what %s was granted: %d", name, r.StatusCode)
		}
	}
	bob.await("the end", func() bool { return bob.states[theLent.uri].Lifecycle.Exited() })
	must.Do(t, laptop.audience(theLent.uri, to("bob"))) // the machine says it again
	if one := lent(); !slices.Equal(one.May, []string{"ann"}) || bob.subscribe(theLent.uri) == nil {
		t.Errorf("%+v", one)
	}
}

// What an administrator has ended stays ended while the terminal is lent, also at the
// next hosts, at which it has other URIs.
func TestWhatAdministratorsEndOutlivesTheHost(t *testing.T) {
	s := newStaff(true, "machine.laptop.ann", "observer.bob.bob", "observer.carol.carol")
	begin := func(uri, former string) *host.Host {
		h := steadyHost(t, host.Options{People: s})
		laptop := joined(t, h, s.of["machine.laptop.ann"], viewOptions{resume: true})
		p := clientTerminal(uri, laptop.id)
		p.Meta = ahp.AddAudience(nil, to("bob", "carol"))
		if former != "" {
			p.Meta[ahp.FormerKey], _ = json.Marshal(former)
		}
		must.Do(t, laptop.call(ahp.MethodCreateTerminal, p, nil))
		return h
	}
	sees := func(h *host.Host, who, uri string) bool { return h.Decides(s.of["observer."+who+"."+who], uri) }
	const first = "ahp-terminal:/first"
	h := begin(first, "")
	if !sees(h, "bob", first) || !h.Terminals().EndGrant(host.IDOf(first), "bob") || sees(h, "bob", first) {
		t.Fatal("nothing was ended")
	}
	before := ""
	for _, uri := range []string{first, "ahp-terminal:/second", "ahp-terminal:/third"} {
		h.Close()
		h = begin(uri, before)
		testkit.Eventually(t, patience, "it is kept for the next host", func() bool { return len(s.Look().Withdrawn[uri]) > 0 })
		if sees(h, "bob", uri) || !sees(h, "carol", uri) {
			t.Errorf("at %s: bob %t, carol %t", uri, sees(h, "bob", uri), sees(h, "carol", uri))
		}
		before = uri
	}
	h.Close()
	if h = begin("ahp-terminal:/lent-anew", ""); !sees(h, "bob", "ahp-terminal:/lent-anew") {
		t.Error("another loan is not what it was ended for")
	}
}

// mayLook are the functions of the host that access terminals or their list without
// asking who sees them, each for a reason. Other functions ask rights.Viewer.Sees.
var mayLook = map[string]string{
	"View.List": "it asks it", "View.Find": "it asks it", "Host.rows": "it asks it",
	"Host.entriesOf": "administrators see names, owners and sizes; owners how many of their machines' there are",
	"Book.lister":    "it asks it", "Host.shells": "it asks it what of a shell may be shown", "Host.uriOf": "the name was resolved in a catalogue",
	"runsMachines.Asked": "it asks it", "runsMachines.Away": "it asks it",
	"Book.know": "it has what is open looked at again", "Book.regroup": "likewise", "Book.OwnedAnew": "likewise",
	"conn.terminalLocked": "it asks it", "Host.channelLocked": "sessions: is the URI in use", "conn.disposeTerminal": "for administrators",
	"Book.Announce": "of the client's own; that another has the URI may be told", "Host.admitServerLocked": "likewise, and a limit",
	"conn.setAudience": "of the client's own", "conn.inputSaid": "of the client's own", "conn.linkOf": "of the client's own", "conn.lentPorts": "of the client's own", "portTerminals.Route": "it asks it", "portTerminals.Lendings": "Route is asked for what it finds", "portTerminals.Here": "another node has asked it", "conn.reconnect": "of the client's own", "Host.servedLocked": "of the client's own",
	"conn.listParked": "it asks it", "Book.handOverParked": "of one machine, which is at another node", "conn.unparkLocked": "of the client's own, and for administrators", "conn.park": "of the client's own", "Book.parkedBy": "of the client's own",
	"Book.leave": "the list itself", "Book.park": "a limit, and the list itself", "Book.Unpark": "the list itself", "Book.unlistParked": "the list itself", "Book.continueParked": "the list itself", "Book.Every": "the list itself", "Book.Known": "the list itself", "Book.mirror": "the list itself",
	"Book.ShortName":   "a name that follows from the URI",
	"hostShells.Shell": "sessions ask for their own", "hostShells.Held": "of the session's own", "hostShells.Foreign": "it asks it for the session's person",
	"Caller.Kill": "of the session's own", "Caller.Hold": "of the session's own", "Call.using": "of the session's own", "Call.look": "of the session's own", "Call.Claim": "of the session's own",
	"Book.AddTerminal": "the list itself", "Book.remove": "the list itself", "NewBook": "the list itself", "Book.Close": "the host's end", "Host.Drain": "the host's end", "Book.AdmitTerminal": "a limit of the host",
	"Book.Record": "memory", "Book.claimed": "takes a name away, tells nothing", "Book.formerOf": "tells its owner alone",
	"Book.changes": "other nodes ask it for who sees them there", "Book.Feed": "likewise", "Book.Mirror": "of another node's own", "Book.MirrorGone": "of another node's own",
	"Book.MirrorsOf": "of another node's own", "Book.NodeSilent": "of another node's own", "Book.ApplyFeed": "of another node's own", "Book.Wants": "whoever follows it has been asked", "Book.Pace": "waits",
	"Book.moved": "of the client's own", "conn.take": "of the client's own",
	"Host.Metrics": "numbers alone, at an address for the operator",
	"Host.Lent":    "names, owners and sizes for administrators", "Book.endGrant": "administrators end grants", "Host.endShell": "administrators end shells", "Host.lonely": "ends shells",
}

// theList are the names under which functions of the host get at terminals: those of
// AHP's catalogue, parked ones, both, and shells for sessions.
var theList = []string{"Shell", "Listed", "ByURI", "Parked", "ByID", "Every", "Known", "mirror"}

// A door that does not ask who sees a terminal fails here: every function of the host
// that accesses the terminals must be among those that may.
func TestEveryDoorAsks(t *testing.T) {
	var files []string
	for _, dir := range []string{"", "sessions/", "terminals/"} {
		some, err := filepath.Glob(dir + "*.go")
		if err != nil || len(some) == 0 {
			t.Fatal(err)
		}
		files = append(files, some...)
	}
	seen := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f := must.Get(parser.ParseFile(token.NewFileSet(), name, nil, 0))(t)
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			name := fn.Name.Name
			if fn.Recv != nil {
				of := fn.Recv.List[0].Type
				if star, ok := of.(*ast.StarExpr); ok {
					of = star.X
				}
				if generic, ok := of.(*ast.IndexExpr); ok {
					of = generic.X
				}
				name = of.(*ast.Ident).Name + "." + name
			}
			ast.Inspect(fn.Body, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(theList, s.Sel.Name) && isHost(s.X) {
					seen[name] = true
				}
				return true
			})
		}
	}
	for name := range seen {
		if mayLook[name] == "" {
			t.Errorf("%s looks at terminals: have it ask rights.Viewer.Sees, and say here why it may", name)
		}
	}
	for name := range mayLook {
		if !seen[name] && name != "NewBook" {
			t.Errorf("%s does not look at terminals: take it out here", name)
		}
	}
}

// isHost reports whether an expression is the host, as far as names tell.
func isHost(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "h" || x.Name == "b"
	case *ast.SelectorExpr:
		return slices.Contains([]string{"h", "host", "Shells", "terminals", "b", "book"}, x.Sel.Name)
	}
	return false
}

// A new method of AHP must be listed here with its treatment of invisible terminals.
func TestEveryMethodIsADoor(t *testing.T) {
	want := map[string]string{
		ahp.MethodPing: "names none", ahp.MethodInitialize: "AHP initialize", ahp.MethodReconnect: "AHP reconnect", ahp.MethodSubscribe: "AHP subscribe",
		ahp.MethodListSessions: "names none", ahp.MethodCreateSession: "that another has the URI may be told", ahp.MethodDisposeSession: "names none",
		ahp.MethodCreateTerminal: "AHP claim of a session", ahp.MethodDisposeTerminal: "AHP dispose", ahp.MethodAudience: "AHP audience",
		ahp.MethodShare: "AHP share", ahp.MethodUnshare: "names none", ahp.MethodPark: "AHP park", ahp.MethodParked: "AHP parked", ahp.MethodLentPorts: "AHP lentPorts",
	}
	for _, method := range host.Methods() {
		if door := want[method]; door == "" || strings.HasPrefix(door, "AHP") && doors[door] == nil {
			t.Errorf("%s is in no row of the doors", method)
		}
	}
}
