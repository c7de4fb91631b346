package uplink_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// hostile is a host that sends anything, about any terminal, at any moment, and a person
// who goes on meanwhile.
type hostile struct {
	*world
	t    *testing.T
	host *fakeHost
	rand *rand.Rand
	all  []*target
	taps []*capture // of all connections

	ended map[string]bool // URIs that the host said have ended, which it may
}

// target is a terminal that the host would like to reach.
type target struct {
	h      term.Handle
	child  *testkit.Child
	before term.Info
	open   bool // lent now and then
	mortal bool // nobody is attached, so the host may dispose of it

	printed int64 // bytes
}

func (g *target) print(text string) {
	g.child.Print(text)
	g.printed += int64(len(text))
}

// odd numbers and texts, for every place that takes one.
var (
	oddNumbers = []int64{0, 1, -1, 80, 1000, 1001, 65535, 65536, 70000, math.MaxInt32, math.MinInt32, 1 << 52, -1 << 52, 1<<53 - 1}
	oddTexts   = []string{"", "x", "rm -rf /\r", "\x1b]0;evil\a\x1b[2J", "\u202e\U000e0041", "\x00\xff", strings.Repeat("long ", 20<<10)}
)

// number is an odd one, or as likely one that passes every check.
func (m *hostile) number() int64 {
	if m.rand.IntN(2) == 0 {
		return 1 + m.rand.Int64N(200)
	}
	return oddNumbers[m.rand.IntN(len(oddNumbers))]
}

func (m *hostile) text() string { return oddTexts[m.rand.IntN(len(oddTexts))] }

// action is any action, of any size: known ones, with odd values, and others.
func (m *hostile) action() []byte {
	code := m.number()
	claims := []any{ahp.ClientClaim("mallory"), ahp.ClientClaim(""), map[string]any{"kind": "session", "session": "s"}, "claim", nil}
	kinds := []any{
		map[string]any{"type": ahp.ActionTerminalInput, "data": m.text()},
		map[string]any{"type": ahp.ActionTerminalResized, "cols": m.number(), "rows": m.number()},
		map[string]any{"type": ahp.ActionTerminalCleared},
		map[string]any{"type": ahp.ActionTerminalClaimed, "claim": claims[m.rand.IntN(len(claims))]},
		map[string]any{"type": ahp.ActionTerminalTitleChanged, "title": m.text()},
		map[string]any{"type": ahp.ActionTerminalCwdChanged, "cwd": m.text()},
		map[string]any{"type": ahp.ActionTerminalData, "data": m.text()},
		map[string]any{"type": ahp.ActionTerminalOutput, "data": m.text(), "_meta": map[string]any{"tether/offset": m.number()}},
		map[string]any{"type": ahp.ActionTerminalExited, "exitCode": code},
		map[string]any{"type": ahp.ActionTerminalCommandDetectionAvailable},
		map[string]any{"type": ahp.ActionTerminalCommandExecuted, "commandId": m.text(), "commandLine": m.text(), "timestamp": m.number()},
		map[string]any{"type": ahp.ActionTerminalCommandFinished, "commandId": m.text(), "exitCode": code, "durationMs": m.number()},
		map[string]any{"type": ahp.ActionRootTerminalsChanged, "terminals": []any{map[string]any{"resource": m.channel(), "title": m.text()}}},
		map[string]any{"type": ahp.ActionRootConfigChanged, "config": map[string]any{"lend": "all"}},
		map[string]any{"type": ahp.ActionRootAgentsChanged, "agents": []any{}},
		map[string]any{"type": ahp.ActionRootActiveSessionsChanged, "activeSessions": m.number()},
		map[string]any{"type": "x-evil", "data": m.text()},
		map[string]any{"type": m.number()}, map[string]any{}, m.text(), nil,
	}
	return must.Get(json.Marshal(kinds[m.rand.IntN(len(kinds))]))(m.t)
}

// channel is any that there is, was, or might be: the host guesses ids, too.
func (m *hostile) channel() string {
	of := []string{ahp.RootURI, "", "x", "ahp-terminal:/", m.text()}
	for _, g := range m.all {
		of = append(of, "ahp-terminal:/"+string(g.h.ID()), string(g.h.ID()))
	}
	m.host.mu.Lock()
	created := slices.Clone(m.host.created)
	m.host.mu.Unlock()
	if n := len(created); n > 0 && m.rand.IntN(4) > 0 { // mostly the newest
		return created[max(0, n-1-m.rand.IntN(4))]
	}
	return of[m.rand.IntN(len(of))]
}

// say sends an action in an envelope of any kind.
func (m *hostile) say() {
	channel, action := m.channel(), m.action()
	v := map[string]any{"channel": channel, "action": json.RawMessage(action), "serverSeq": m.number()}
	from := []string{"mallory", "laptop", ""}[m.rand.IntN(3)]
	if m.rand.IntN(3) > 0 {
		v["origin"] = map[string]any{"clientId": from, "clientSeq": m.number()}
	}
	if m.rand.IntN(8) == 0 {
		v["rejectionReason"] = m.text()
	}
	if strings.Contains(string(action), ahp.ActionTerminalExited) {
		m.ended[channel] = true
	}
	m.notify(ahp.MethodAction, v)
}

// notify sends a notification; the daemon may have hung up.
func (m *hostile) notify(method string, params any) {
	m.host.mu.Lock()
	p := m.host.peer
	m.host.mu.Unlock()
	_ = p.Notify(m.ctx, method, params)
}

// methods are all that either side has, and some that nobody has.
var methods = []string{ahp.MethodInitialize, ahp.MethodReconnect, ahp.MethodPing, ahp.MethodSubscribe, ahp.MethodListSessions, ahp.MethodCreateTerminal,
	ahp.MethodDisposeTerminal, ahp.MethodUnsubscribe, ahp.MethodDispatchAction, ahp.MethodAction, ahp.MethodSessionAdded, ahp.MethodAck, ahp.MethodObservers,
	"resourceRead", "resourceWrite", "shutdown", "terminal/input", ""}

// ask calls any method of the daemon's, as a request or as a notification. It must serve
// none.
func (m *hostile) ask() {
	method := methods[m.rand.IntN(len(methods))]
	params := map[string]any{"channel": m.channel(), "applied": m.number(), "count": m.number(), "action": json.RawMessage(m.action()), "uri": "file:///etc/passwd",
		"name": m.text(), "cols": m.number(), "rows": m.number()}
	if m.rand.IntN(2) == 0 {
		m.notify(method, params)
		return
	}
	m.host.mu.Lock()
	p := m.host.peer
	m.host.mu.Unlock()
	ctx, cancel := context.WithTimeout(m.ctx, time.Second)
	defer cancel()
	if err := p.Call(ctx, method, params, nil); err == nil {
		m.t.Errorf("the daemon served %q", method)
	}
}

// answer changes how the host answers from now on.
func (m *hostile) answer() {
	f := m.host
	f.mu.Lock()
	defer f.mu.Unlock()
	method := methods[m.rand.IntN(7)]
	f.fail, f.odd = nil, nil
	switch m.rand.IntN(4) {
	case 0:
		f.fail = map[string]*jsonrpc.Error{method: jsonrpc.Errorf(jsonrpc.Code(m.number()), "%s", m.text())}
	case 1:
		f.odd = map[string]any{method: map[string]any{"protocolVersion": m.text(), "serverSeq": m.number(), "type": m.text(),
			"snapshot": map[string]any{"resource": m.text(), "fromSeq": m.number(), "state": map[string]any{"content": m.text(), "executionTarget": "client", "cols": m.number()}}}}
	case 2:
		f.odd = map[string]any{method: m.text()}
	}
}

// live performs the actions of the person, the children and the network meanwhile.
func (m *hostile) live() {
	g := m.all[m.rand.IntN(len(m.all))]
	switch m.rand.IntN(6) {
	case 0:
		_ = g.h.Unlend("lab")
	case 1:
		if g.open {
			_ = g.h.Lend("lab")
		}
	case 2:
		m.cut(false)
	case 3:
		pass(time.Duration(m.rand.IntN(40)) * time.Second)
	default:
		g.print(g.before.Name + " prints\r\n")
	}
}

// connect keeps the daemon's messages on its connections.
func (m *hostile) connect(ctx context.Context, _ client.Endpoint, o client.Options) (*client.Conn, error) {
	ch, err := m.dial()
	if err != nil {
		return nil, err
	}
	c := &capture{Channel: ch}
	locked(&m.mu, func() { m.wires, m.taps = append(m.wires, ch), append(m.taps, c) })
	return client.ConnectChannel(ctx, c, o)
}

func newHostile(t *testing.T, seed uint64) *hostile {
	m := &hostile{t: t, rand: rand.New(rand.NewPCG(seed, 7)), ended: map[string]bool{}}
	m.host = &fakeHost{target: ahp.TargetClient, marker: ahp.ClientTerminals{Version: 1, CommandActions: true, Resume: seed%2 == 0, GraceMs: 30000}.Meta()}
	ready := make(chan struct{}) // m.world is known
	m.world = fakeWorld(t, m.host, func(o *uplink.Options) {
		o.Connect = func(ctx context.Context, e client.Endpoint, co client.Options) (*client.Conn, error) {
			<-ready
			return m.connect(ctx, e, co)
		}
	})
	close(ready)
	agent := term.Agent("claude")
	for _, g := range []struct {
		by   term.Actor
		spec term.Spec
		target
	}{
		{term.User, term.Spec{Name: "lent", LendTo: []string{"lab"}}, target{open: true, mortal: true}},
		{term.User, term.Spec{Name: "attached", LendTo: []string{"lab"}}, target{open: true}},
		{agent, term.Spec{Name: "background", LendTo: []string{"lab"}}, target{open: true, mortal: true}},
		{term.User, term.Spec{Name: "canary private", Private: true}, target{}},
		{term.User, term.Spec{Name: "canary alone"}, target{}},
		{term.User, term.Spec{Name: "canary elsewhere", LendTo: []string{"another host"}}, target{}},
	} {
		g.spec.Command, g.spec.Cwd = []string{"fake"}, testkit.Abs("/src")
		var err error
		if g.h, err = m.pool.As(g.by).Spawn(g.spec); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		g.child = m.child
		if g.h, err = m.pool.As(term.User).Terminal(g.h.ID()); err != nil { // the person's handle
			t.Fatal(err)
		}
		g.before = g.h.Info()
		m.all = append(m.all, &g.target)
	}
	leave := must.Get(m.all[1].h.Attach())(t)
	t.Cleanup(leave)
	return m
}

// check tests the invariants that hold with any host.
func (m *hostile) check() {
	m.t.Helper()
	disposals := false
	for _, uri := range m.host.created {
		disposals = disposals || m.ended[uri]
	}
	for _, g := range m.all {
		now, was := g.h.Info(), g.before
		if typed := g.child.Typed(); typed != "" {
			m.t.Errorf("%q was typed into %s", typed, was.Name)
		}
		if g.child.Killed() && !(g.mortal && disposals) {
			m.t.Errorf("%s was killed", was.Name)
		}
		if now.Title != was.Title || now.Cwd != was.Cwd || now.Size != was.Size || now.Owner != was.Owner || now.Visible != was.Visible || now.Private != was.Private {
			m.t.Errorf("%s became %+v", was.Name, now)
		}
		if now.Bytes > g.printed || now.Bytes < g.printed && !g.child.Killed() {
			m.t.Errorf("%s has %d bytes of output, and its program printed %d", was.Name, now.Bytes, g.printed)
		}
		if !g.open && now.LentToHost("lab") {
			m.t.Errorf("%s was lent", was.Name)
		}
	}
	for _, tap := range m.taps {
		for _, sent := range tap.since(time.Time{}) {
			if strings.Contains(sent, "canary") {
				m.t.Errorf("of what is not lent this was sent: %.300s", sent)
			}
		}
	}
}

// recover has the host behave, and looks whether the terminals that are left can be lent
// to it.
func (m *hostile) recover() {
	m.t.Helper()
	m.host.mu.Lock()
	m.host.fail, m.host.odd = nil, nil
	m.host.marker = ahp.ClientTerminals{Version: 1, CommandActions: true}.Meta() // it acknowledges nothing
	m.host.mu.Unlock()
	m.endLink()
	m.newLink()
	m.online()
	g := m.all[1]
	must.Do(m.t, g.h.Lend("lab"))
	pass(time.Minute)
	g.print("after all that")
	pass(time.Minute)
	m.host.mu.Lock()
	defer m.host.mu.Unlock()
	for _, text := range m.host.text {
		if strings.HasSuffix(text, "after all that") {
			return
		}
	}
	m.t.Error("a host that behaves again is not sent what a terminal prints")
}

// Every action, size and order, for every terminal: a host reaches nothing, sees only
// terminals that are lent to it, and may end those.
func TestAHostMayTryAnything(t *testing.T) {
	var refused int64
	disposals := 0
	for seed := range uint64(24) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newHostile(t, seed)
				for range 150 {
					[]func(){m.say, m.say, m.say, m.ask, m.answer, m.live}[m.rand.IntN(6)]()
					if m.rand.IntN(4) == 0 {
						synctest.Wait()
					}
				}
				synctest.Wait()
				refused += m.link.Status().Refused
				m.recover()
				m.check()
				if m.all[0].child.Killed() {
					disposals++
				}
			})
		})
	}
	if refused == 0 || disposals == 0 {
		t.Errorf("%d actions were refused and %d terminals disposed of; want some, or this test shows nothing", refused, disposals)
	}
}
