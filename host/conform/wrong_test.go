package conform_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/host/conform"
	"tether/host/shells"
	"tether/internal/testkit"
	"tether/jsonrpc"
)

// The connections of a check, in the order in which they are made.
const (
	owner     = iota
	other     // the client that watches
	stranger  // a client that the host does not know
	ownerBack // the owner after its connection was lost

	otherBack = ownerBack // in the plain rules: the watching client after its connection was lost
)

type message = map[string]any

// wrong makes a good host break a rule. Its functions see passing messages and may change
// them. A message for which they return false is dropped; a nil function lets all
// messages pass.
type wrong struct {
	ask func(x *twist, m message) bool // from the client
	say func(x *twist, m message) bool // from the host
}

// twist is a channel to a host whose messages a wrong changes.
type twist struct {
	jsonrpc.Channel
	wrong wrong
	n     int // which connection it is
	out   chan []byte

	mu     sync.Mutex
	id     string          // clientId
	asked  map[any]message // requests under way
	about  message         // the request that the message from the host answers; nil if it answers none
	forged bool            // state for wrongs that need it
}

// Send implements jsonrpc.Channel.
func (x *twist) Send(ctx context.Context, raw []byte) error {
	var m message
	if err := json.Unmarshal(raw, &m); err != nil {
		return err
	}
	x.mu.Lock()
	if m["method"] == ahp.MethodInitialize && x.id == "" {
		x.id, _ = dig(m, "params", "clientId").(string)
	}
	x.asked[m["id"]] = m
	pass := x.wrong.ask == nil || x.wrong.ask(x, m)
	x.mu.Unlock()
	if !pass {
		return nil
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return x.Channel.Send(ctx, raw)
}

// pump passes the host's messages on until the channel ends.
func (x *twist) pump() {
	defer close(x.out)
	for {
		raw, err := x.Channel.Recv(context.Background())
		var m message
		if err != nil || json.Unmarshal(raw, &m) != nil {
			return
		}
		x.mu.Lock()
		x.about = nil
		if m["method"] == nil {
			x.about = x.asked[m["id"]]
		}
		if x.wrong.say == nil || x.wrong.say(x, m) {
			x.tell(m)
		}
		x.mu.Unlock()
	}
}

// tell sends a message to the client.
func (x *twist) tell(m message) {
	m["jsonrpc"] = "2.0"
	raw, _ := json.Marshal(m) // came from JSON
	x.out <- raw
}

// yes answers a request as if the host had accepted it.
func (x *twist) yes(m message) bool {
	x.tell(message{"id": m["id"], "result": nil})
	return false
}

// Recv implements jsonrpc.Channel.
func (x *twist) Recv(ctx context.Context) ([]byte, error) {
	select {
	case raw, ok := <-x.out:
		if !ok {
			return nil, io.EOF
		}
		return raw, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// dig follows names into a message.
func dig(v any, names ...string) any {
	for _, name := range names {
		m, _ := v.(message)
		v = m[name]
	}
	return v
}

// action returns the action in a message, nil if there is none, and whether it was
// refused.
func action(m message) (a message, refused bool) {
	a, _ = dig(m, "params", "action").(message)
	return a, dig(m, "params", "rejectionReason") != nil
}

// isAction reports whether m has an action of that kind.
func isAction(m message, kind string) bool {
	a, _ := action(m)
	return a != nil && a["type"] == kind
}

// state returns the state in the answer to a subscription, nil if m is no such answer.
func (x *twist) state(m message) (s message, root bool) {
	if x.about == nil || x.about["method"] != ahp.MethodSubscribe {
		return nil, false
	}
	s, _ = dig(m, "result", "snapshot", "state").(message)
	return s, dig(x.about, "params", "channel") == ahp.RootURI
}

// snapshots lets f change the state of a terminal in snapshots or, if root, that of the
// root.
func snapshots(root bool, f func(x *twist, s message)) wrong {
	return wrong{say: func(x *twist, m message) bool {
		if s, isRoot := x.state(m); s != nil && isRoot == root {
			f(x, s)
		}
		return true
	}}
}

// entries lets f change each entry in the state of the root.
func entries(f func(entry message)) wrong {
	return snapshots(true, func(_ *twist, s message) {
		all, _ := s["terminals"].([]any)
		for _, one := range all {
			f(one.(message))
		}
	})
}

// lose drops actions of a kind to the client of a connection: all, or those for which is
// returns true.
func lose(n int, kind string, is func(m message) bool) wrong {
	return wrong{say: func(x *twist, m message) bool {
		_, refused := action(m)
		return x.n != n || refused || !isAction(m, kind) || is != nil && !is(m)
	}}
}

// accept makes a refused action on a connection look accepted.
func accept(n int, kind string) wrong {
	return wrong{say: func(x *twist, m message) bool {
		if x.n == n && isAction(m, kind) {
			delete(m["params"].(message), "rejectionReason")
		}
		return true
	}}
}

// requests answers matching requests as accepted, and does not pass them on.
func requests(method string, is func(x *twist, params message) bool) wrong {
	return wrong{ask: func(x *twist, m message) bool {
		params, _ := m["params"].(message)
		if m["method"] == method && (is == nil || is(x, params)) {
			return x.yes(m)
		}
		return true
	}}
}

// unrefused turns refusals with a code, of requests of a method, into acceptance.
func unrefused(method string, code jsonrpc.Code) wrong {
	return wrong{say: func(x *twist, m message) bool {
		if x.about["method"] == method && dig(m, "error", "code") == float64(code) {
			delete(m, "error")
			m["result"] = message{"snapshot": message{"resource": "x:/", "fromSeq": 0, "state": message{}}}
		}
		return true
	}}
}

// withoutSnapshots leaves the state out of answers to subscriptions to a channel.
func withoutSnapshots(channel string) wrong {
	return wrong{say: func(x *twist, m message) bool {
		if x.about["method"] == ahp.MethodSubscribe && dig(x.about, "params", "channel") == channel {
			m["result"] = message{}
		}
		return true
	}}
}

// dispatches lets f change actions that the client of a connection dispatches. If f
// returns false, the action is dropped.
func dispatches(n int, kind string, f func(x *twist, a message) bool) wrong {
	return wrong{ask: func(x *twist, m message) bool {
		a, _ := action(m)
		return x.n != n || !isAction(m, kind) || f(x, a)
	}}
}

// exitCode changes the exit code that the client of a connection receives, for terminals
// whose URI ends with suffix.
func exitCode(n int, suffix string, code int) wrong {
	return wrong{say: func(x *twist, m message) bool {
		channel, _ := dig(m, "params", "channel").(string)
		if a, refused := action(m); x.n == n && !refused && isAction(m, ahp.ActionTerminalExited) && strings.HasSuffix(channel, suffix) {
			a["exitCode"] = code
		}
		return true
	}}
}

// reconnects lets f change the answer to reconnect on a connection.
func reconnects(n int, f func(m message)) wrong {
	return wrong{say: func(x *twist, m message) bool {
		if x.n == n && x.about["method"] == ahp.MethodReconnect {
			f(m)
		}
		return true
	}}
}

func onChannel(suffix string) func(m message) bool {
	return func(m message) bool {
		channel, _ := dig(m, "params", "channel").(string)
		return strings.HasSuffix(channel, suffix)
	}
}

// without removes a member of the changed object.
func without(name string) func(*twist, message) {
	return func(_ *twist, s message) { delete(s, name) }
}

// with sets a member of the changed object.
func with(name string, value any) func(*twist, message) {
	return func(_ *twist, s message) { s[name] = value }
}

// told makes a terminal/data that a good host would not send.
func told(text string, channel any) message {
	return message{"method": ahp.MethodAction, "params": message{"channel": channel, "serverSeq": 1,
		"action": message{"type": ahp.ActionTerminalData, "data": text}}}
}

// plainWrongs has, for each rule of the plain protocol, hosts that break this rule and no
// earlier one.
var plainWrongs = map[string][]wrong{
	"initialize selects an offered protocol version": {{say: func(x *twist, m message) bool {
		if x.about["method"] == ahp.MethodInitialize && m["result"] != nil {
			m["result"].(message)["protocolVersion"] = "9.9.9"
		}
		return true
	}}},
	"ping is answered": {{ask: func(_ *twist, m message) bool { return m["method"] != ahp.MethodPing }}},
	"an unknown method is refused with -32601": {
		requests("x-conform/unknown", nil), {say: func(x *twist, m message) bool {
			if x.about["method"] == "x-conform/unknown" {
				m["error"] = message{"code": -32600, "message": "another code"}
			}
			return true
		}}},
	"a second initialize is refused": {unrefused(ahp.MethodInitialize, jsonrpc.CodeMethodNotFound)},
	"reconnect by an unknown client is refused": {reconnects(stranger, func(m message) {
		delete(m, "error")
		m["result"] = message{"type": "replay", "actions": []any{}, "missing": []any{}}
	})},
	"subscribing to the root returns the catalogue":   {snapshots(true, with("terminals", "none")), withoutSnapshots(ahp.RootURI)},
	"subscribing to a missing terminal is refused":    {unrefused(ahp.MethodSubscribe, ahp.CodeNotFound)},
	"disposing of a missing terminal changes nothing": {{ask: func(x *twist, m message) bool { return m["method"] != ahp.MethodDisposeTerminal || x.Close() != nil }}},
	"createTerminal starts a terminal and lists it": {
		snapshots(true, with("terminals", []any{})), snapshots(false, with("lifecycle", message{"status": "exited"})),
		snapshots(false, with("claim", message{"kind": "client", "clientId": "somebody"})), snapshots(false, with("executionTarget", "client"))},
	"createTerminal with a URI in use is refused": {unrefused(ahp.MethodCreateTerminal, ahp.CodeAlreadyExists)},
	"typed commands run, and their output arrives as terminal/data": {
		dispatches(owner, ahp.ActionTerminalInput, func(*twist, message) bool { return false }), lose(owner, ahp.ActionTerminalData, nil)},
	"multi-byte characters arrive intact": {{say: func(_ *twist, m message) bool {
		if a, _ := action(m); isAction(m, ahp.ActionTerminalData) {
			a["data"] = strings.ToValidUTF8(strings.ReplaceAll(a["data"].(string), "\U0001F642", "\xf0"), "\ufffd")
		}
		return true
	}}},
	"a later subscriber's snapshot contains the output": {snapshots(false, with("content", []any{}))},
	"the state has the last terminal/resized from the claim's holder": {
		dispatches(owner, ahp.ActionTerminalResized, func(*twist, message) bool { return false }),
		dispatches(owner, ahp.ActionTerminalResized, func(_ *twist, a message) bool { return a["cols"] == 90.0 })},
	"a client receives nothing after it unsubscribes": {{ask: func(_ *twist, m message) bool { return m["method"] != ahp.MethodUnsubscribe }}},
	"reconnect delivers missed output once, then new output": {
		reconnects(otherBack, func(m message) { m["result"].(message)["actions"] = []any{} }),
		reconnects(otherBack, func(m message) {
			r := m["result"].(message)
			r["actions"] = append(r["actions"].([]any), r["actions"].([]any)...)
		}),
		reconnects(otherBack, func(m message) { m["result"] = message{"type": "snapshot", "snapshots": []any{}} }),
		reconnects(otherBack, func(m message) {
			delete(m, "result")
			m["error"] = message{"code": ahp.CodeNotFound, "message": "who are you?"}
		}),
		lose(otherBack, ahp.ActionTerminalData, nil)},
	"terminal/cleared removes the text, also for later subscribers": {
		dispatches(owner, ahp.ActionTerminalCleared, func(*twist, message) bool { return false }), keepsAll()},
	"terminal/exited has the exit code": {exitCode(owner, "", 0), lose(owner, ahp.ActionTerminalExited, nil)},
	"after the exit, state and catalogue have the exit code": {
		snapshots(false, with("lifecycle", message{"status": "running"})), entries(func(e message) { e["lifecycle"] = message{"status": "exited", "exitCode": 0} })},
	"disposeTerminal removes a terminal": {requests(ahp.MethodDisposeTerminal, nil)},
}

// clientWrongs are the same for the rules of client-executed terminals.
var clientWrongs = map[string][]wrong{
	"a claim for another client is refused with -32602": {requests(ahp.MethodCreateTerminal, func(x *twist, p message) bool {
		id := dig(p, "claim", "clientId")
		return id != nil && id != x.id
	})},
	"a session claim is refused with -32602": {requests(ahp.MethodCreateTerminal, func(_ *twist, p message) bool {
		return dig(p, "claim", "kind") == "session"
	})},
	"createTerminal starts no process, and the snapshot has executionTarget client": {
		snapshots(false, without("executionTarget")), snapshots(false, with("executionTarget", "server")),
		snapshots(false, with("claim", message{"kind": "client", "clientId": "somebody"}))},
	"root/terminalsChanged reports a new terminal":                             {lose(other, ahp.ActionRootTerminalsChanged, nil)},
	"the catalogue has executionTarget client":                                 {entries(func(e message) { delete(e, "executionTarget") }), snapshots(true, with("terminals", []any{}))},
	"another client's createTerminal with a URI in use is refused with -32010": {unrefused(ahp.MethodCreateTerminal, ahp.CodeAlreadyExists)},
	"terminal/output reaches the other subscribers as terminal/data": {
		lose(other, ahp.ActionTerminalData, nil), {say: func(x *twist, m message) bool {
			if a, _ := action(m); x.n == other && isAction(m, ahp.ActionTerminalData) {
				a["type"] = ahp.ActionTerminalOutput
			}
			return true
		}}, {say: func(x *twist, m message) bool { // each twice
			if x.n == other && isAction(m, ahp.ActionTerminalData) {
				x.tell(m)
			}
			return true
		}}},
	"the owner does not receive its own output as new": {{ask: func(x *twist, m message) bool {
		if a, _ := action(m); x.n == owner && isAction(m, ahp.ActionTerminalOutput) {
			x.tell(told(a["data"].(string), dig(m, "params", "channel")))
		}
		return true
	}}},
	"a later subscriber's snapshot contains the output": {snapshots(false, with("content", []any{}))},
	"output from other clients is refused with a reason": {
		accept(other, ahp.ActionTerminalOutput), dispatches(other, ahp.ActionTerminalOutput, func(*twist, message) bool { return false })},
	"exit, size, title, directory and clearing from other clients are refused": {
		accept(other, ahp.ActionTerminalExited), accept(other, ahp.ActionTerminalResized), accept(other, ahp.ActionTerminalTitleChanged),
		accept(other, ahp.ActionTerminalCwdChanged), accept(other, ahp.ActionTerminalCleared)},
	"input and claims from other clients are refused (observation only)": {accept(other, ahp.ActionTerminalInput), accept(other, ahp.ActionTerminalClaimed)},
	"input and claims from the owner are refused":                        {accept(owner, ahp.ActionTerminalInput), accept(owner, ahp.ActionTerminalClaimed)},
	"refused actions have no effect":                                     {forges("title", "forged"), forges("cols", 10), forges("content", []any{}), repeats()},
	"the owner's size, title and directory reach other subscribers": {
		lose(other, ahp.ActionTerminalResized, nil), lose(other, ahp.ActionTerminalTitleChanged, nil), lose(other, ahp.ActionTerminalCwdChanged, nil)},
	"the owner's size, title and directory are in the state": {
		snapshots(false, with("cols", 80)), snapshots(false, with("title", "conform")), snapshots(false, with("cwd", "file:///conform"))},
	"states: the catalogue has the owner's last report of input and readiness": {
		{ask: func(x *twist, m message) bool { return x.n != owner || m["method"] != ahp.MethodState }},
		entries(func(e message) { delete(e, "_meta") }), entries(func(e message) { e["_meta"] = message{ahp.AwaitsKey: ahp.InputAwaits} })},
	"states: reports from other clients have no effect": {
		{ask: func(x *twist, m message) bool { x.forged = x.forged || m["method"] == ahp.MethodState; return true },
			say: snapshots(true, func(x *twist, s message) {
				for _, one := range s["terminals"].([]any) {
					if x.forged {
						one.(message)["_meta"] = message{ahp.AwaitsKey: ahp.InputSecret}
					}
				}
			}).say}},
	"one terminal/output with maxDataBytes of text is accepted": {dispatches(owner, ahp.ActionTerminalOutput, func(_ *twist, a message) bool {
		return len(a["data"].(string)) < 32<<10
	})},
	"clearing by the owner removes the text, and offsets continue": {
		dispatches(owner, ahp.ActionTerminalCleared, func(*twist, message) bool { return false }), lose(other, ahp.ActionTerminalCleared, nil), keeps()},
	"a client receives nothing after it unsubscribes": {{ask: func(_ *twist, m message) bool { return m["method"] != ahp.MethodUnsubscribe }}},
	"the owner's commands are in the state, with output and exit code": {
		lose(other, ahp.ActionTerminalCommandFinished, nil), snapshots(false, func(_ *twist, s message) {
			for _, part := range s["content"].([]any) {
				delete(part.(message), "exitCode")
			}
		})},
	"OSC 133 and 633 in terminal/output never reach observers, not even in two parts": {
		rewrites("$ ", "\x1b]133;A\a$ "), rewrites("ran\r\n", "\x1b]633;C\aran\r\n"), rewrites("ran\r\n", "")},
	"offsets: repeated text is dropped, and positions are acknowledged": {
		dispatches(owner, ahp.ActionTerminalOutput, func(_ *twist, a message) bool { delete(a, "_meta"); return true }),
		{say: func(_ *twist, m message) bool { return m["method"] != ahp.MethodAck }}},
	"offsets: missing text is shown as missing": {dispatches(owner, ahp.ActionTerminalOutput, func(_ *twist, a message) bool {
		if a["data"] == "after the gap" {
			delete(a, "_meta")
		}
		return true
	})},
	"a terminal survives the loss of its owner's connection for graceMs": {
		{say: func(x *twist, m message) bool { return x.n != ownerBack || m["method"] != ahp.MethodAck }},
		{say: func(x *twist, m message) bool {
			if s, root := x.state(m); x.n == ownerBack && s != nil && !root {
				s["lifecycle"] = message{"status": "exited"}
			}
			return true
		}}},
	"terminal/exited from the owner follows its output and has the exit code": {
		exitCode(other, "", 0), lose(other, ahp.ActionTerminalExited, nil), lose(other, ahp.ActionTerminalData, func(m message) bool {
			a, _ := action(m)
			return a["data"] == "last\r\n"
		})},
	"after the exit, state and catalogue have the exit code": {
		snapshots(false, with("lifecycle", message{"status": "running"})), entries(func(e message) { e["lifecycle"] = message{"status": "exited", "exitCode": 0} })},
	"output after the exit is refused":     {accept(ownerBack, ahp.ActionTerminalOutput)},
	"disposeTerminal removes the terminal": {requests(ahp.MethodDisposeTerminal, nil)},
	"root/terminalsChanged reports a removed terminal": {lose(other, ahp.ActionRootTerminalsChanged, func(m message) bool {
		all, _ := dig(m, "params", "action", "terminals").([]any)
		return len(all) == 0
	})},
	"terminal/exited informs the owner when another client disposes of a terminal": {
		lose(ownerBack, ahp.ActionTerminalExited, onChannel("-2")), requests(ahp.MethodDisposeTerminal, func(x *twist, _ message) bool { return x.n == other })},
	"a terminal whose owner has disconnected exits with -1 and is removed": {
		lose(other, ahp.ActionTerminalExited, onChannel("-3")), exitCode(other, "-3", 0)},
}

// forges is a host that refuses other clients' titles but applies them: later states show
// them.
func forges(name string, value any) wrong {
	w := dispatches(other, ahp.ActionTerminalTitleChanged, func(x *twist, _ message) bool { x.forged = true; return true })
	w.say = snapshots(false, func(x *twist, s message) {
		if x.forged {
			s[name] = value
		}
	}).say
	return w
}

// repeats is a host that refuses another client's output, but sends it to that client as
// terminal/data.
func repeats() wrong {
	return wrong{ask: func(x *twist, m message) bool {
		if a, _ := action(m); x.n == other && isAction(m, ahp.ActionTerminalOutput) {
			x.tell(told(a["data"].(string), dig(m, "params", "channel")))
		}
		return true
	}}
}

// rewrites is a host whose snapshots have other text.
func rewrites(text, by string) wrong {
	return snapshots(false, func(_ *twist, s message) {
		for _, part := range s["content"].([]any) {
			for _, key := range []string{"value", "output"} {
				if old, ok := part.(message)[key].(string); ok {
					part.(message)[key] = strings.ReplaceAll(old, text, by)
				}
			}
		}
	})
}

// keeps is a host that reports a clearing to others but keeps the text.
func keeps() wrong { return keeping("before\r\n") }

// keepsAll is keeps for text that the shell has printed.
func keepsAll() wrong { return keeping("conform\r\n") }

func keeping(text string) wrong {
	return wrong{say: func(x *twist, m message) bool {
		x.forged = x.forged || isAction(m, ahp.ActionTerminalCleared) && dig(m, "params", "rejectionReason") == nil
		if s, root := x.state(m); x.forged && s != nil && !root {
			s["content"] = append([]any{message{"type": "unclassified", "value": text}}, s["content"].([]any)...)
		}
		return true
	}}
}

// connect connects the check to a host whose messages w changes. It counts the
// connections.
func (w wrong) connect(h *host.Host) func(context.Context, client.Endpoint, client.Options) (*client.Conn, error) {
	n := -1
	return func(ctx context.Context, _ client.Endpoint, o client.Options) (*client.Conn, error) {
		near, far := testkit.Channels()
		go func() { _ = h.ServeChannel(context.Background(), far) }() // ends with the channel
		n++
		x := &twist{Channel: near, wrong: w, n: n, out: make(chan []byte, 1<<12), asked: map[any]message{}}
		go x.pump() // until its end
		return client.ConnectChannel(ctx, x, o)
	}
}

// lookAt checks a host whose messages w changes, without waiting in real time.
func lookAt(t *testing.T, w wrong, o host.Options) (report *conform.Report, err error) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(o)
		defer h.Close()
		report, err = conform.Run(t.Context(), conform.Options{
			Endpoint: client.Endpoint{URL: "ws://nowhere"}, Connect: w.connect(h),
			Settle: func(context.Context) error { synctest.Wait(); return nil },
		})
	})
	return report, err
}

// late is a channel whose Send returns some time after it has sent the message, as on a
// busy machine. Messages sent meanwhile are queued.
type late struct{ jsonrpc.Channel }

// Send implements jsonrpc.Channel.
func (l late) Send(ctx context.Context, raw []byte) error {
	err := l.Channel.Send(ctx, raw)
	<-time.After(time.Millisecond) // the delay itself, not a wait for a result
	return err
}

// A good host passes on a busy machine, too: no check reads a result before the host has
// the message.
func TestAGoodHostOnABusyMachine(t *testing.T) {
	for group, o := range map[string]host.Options{"plain": {Runner: runner{}}, "client": {}} {
		synctest.Test(t, func(t *testing.T) {
			h := host.New(o)
			defer h.Close()
			report, err := conform.Run(t.Context(), conform.Options{Endpoint: client.Endpoint{URL: "ws://nowhere"},
				Connect: func(ctx context.Context, _ client.Endpoint, o client.Options) (*client.Conn, error) {
					near, far := testkit.Channels()
					go func() { _ = h.ServeChannel(context.Background(), late{far}) }() // ends with the channel
					return client.ConnectChannel(ctx, late{near}, o)
				}})
			if err != nil || report.Failed() {
				t.Errorf("%s: %v, %v", group, err, verdicts(report)[conform.Fail])
			}
		})
	}
}

// Every rule fails at the hosts that break it, and no earlier rule fails there.
func TestWrongHosts(t *testing.T) {
	for group, o := range map[string]host.Options{"plain": {Runner: runner{}}, "client": {}} {
		good, err := lookAt(t, wrong{}, o)
		if err != nil || good.Failed() {
			t.Fatalf("a good host: %v, %v", err, verdicts(good)[conform.Fail])
		}
		wrongs := map[string]map[string][]wrong{"plain": plainWrongs, "client": clientWrongs}[group]
		for _, rule := range good.Results {
			if rule.Group != group {
				continue
			}
			if rule.Verdict != conform.Pass || len(wrongs[rule.Rule]) == 0 {
				t.Errorf("%s: %s: %s, and %d wrong hosts", group, rule.Rule, rule.Verdict, len(wrongs[rule.Rule]))
			}
			for n, w := range wrongs[rule.Rule] {
				t.Run(fmt.Sprintf("%s/%s/%d", group, rule.Rule, n), func(t *testing.T) {
					report, err := lookAt(t, w, o)
					if err != nil {
						if !strings.HasPrefix(rule.Rule, "initialize") { // there is nothing to check then
							t.Fatal(err)
						}
						return
					}
					for _, r := range report.Results {
						if r.Verdict == conform.Fail {
							if r.Rule != rule.Rule || r.Group != group || strings.Contains(r.Why, "%!") {
								t.Errorf("the first broken rule is %s: %s: %s", r.Group, r.Rule, r.Why)
							}
							return
						}
					}
					t.Error("it keeps all rules")
				})
			}
		}
	}
}

// runner runs shells that know three commands.
type runner struct{}

// Start implements shells.Runner.
func (runner) Start(context.Context, shells.Request) (shells.Process, error) {
	return &process{events: make(chan shells.Event, 8), killed: make(chan struct{})}, nil
}

type process struct {
	events chan shells.Event
	once   sync.Once
	killed chan struct{}
}

// Next implements shells.Process.
func (p *process) Next(ctx context.Context) (shells.Event, error) {
	select {
	case ev := <-p.events:
		return ev, nil
	case <-p.killed:
		return shells.Event{}, io.EOF
	case <-ctx.Done():
		return shells.Event{}, ctx.Err()
	}
}

// Input implements shells.Process.
func (p *process) Input(text string) error {
	p.events <- shells.Event{Text: []byte(text + "\n")}
	if word, ok := strings.CutPrefix(text, "echo "); ok {
		p.events <- shells.Event{Text: []byte(strings.NewReplacer("''", "", "\r", "").Replace(word) + "\r\n")}
		return nil
	}
	if strings.HasPrefix(text, "printf ") {
		p.events <- shells.Event{Text: []byte("grün € \U0001F642\r\n")}
		return nil
	}
	seven := int64(7)
	p.events <- shells.Event{Action: ahp.TerminalExited{ExitCode: &seven}}
	return nil
}

// Resize implements shells.Process.
func (p *process) Resize(int, int) error { return nil }

// Kill implements shells.Process.
func (p *process) Kill() { p.once.Do(func() { close(p.killed) }) }
