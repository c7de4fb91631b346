package host_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc/wsconn"
)

// The host's bounds of a client's message.
const (
	longest    = 1 << 20  // bytes
	mostValues = 32 << 10 // JSON values
)

// costly are messages of a client's with a list of the elements that cost most to decode:
// the element is repeated, with a new name for each %.
var costly = map[string]struct{ method, head, element, tail string }{
	"versions of initialize":       {ahp.MethodInitialize, `{"channel":"ahp-root://","clientId":"x","protocolVersions":[""`, `,""`, `]}`},
	"subscriptions of initialize":  {ahp.MethodInitialize, `{"channel":"ahp-root://","clientId":"x","protocolVersions":["1.0.0"],"initialSubscriptions":[""`, `,""`, `]}`},
	"subscriptions of reconnect":   {ahp.MethodReconnect, `{"channel":"ahp-root://","clientId":"x","subscriptions":[""`, `,""`, `]}`},
	"what ping ignores":            {ahp.MethodPing, `{"x":[{}`, `,{}`, `]}`},
	"what listSessions ignores":    {ahp.MethodListSessions, `{"channel":"ahp-root://","x":[{}`, `,{}`, `]}`},
	"what subscribe ignores":       {ahp.MethodSubscribe, `{"channel":"ahp-terminal:/1","x":[{}`, `,{}`, `]}`},
	"meta of createTerminal":       {ahp.MethodCreateTerminal, `{"channel":"ahp-terminal:/1","_meta":{"x":1`, `,"%":{}`, `}}`},
	"claim of createTerminal":      {ahp.MethodCreateTerminal, `{"channel":"ahp-terminal:/1","claim":{"kind":"client","x":[{}`, `,{}`, `]}}`},
	"meta of createSession":        {ahp.MethodCreateSession, `{"channel":"ahp-session:/1","_meta":{"x":1`, `,"%":{}`, `}}`},
	"tools of createSession":       {ahp.MethodCreateSession, `{"channel":"ahp-session:/1","activeClient":{"clientId":"x","tools":[{}`, `,{}`, `]}}`},
	"what disposeTerminal ignores": {ahp.MethodDisposeTerminal, `{"channel":"ahp-terminal:/1","x":[{}`, `,{}`, `]}`},
	"what disposeSession ignores":  {ahp.MethodDisposeSession, `{"channel":"ahp-session:/1","x":[{}`, `,{}`, `]}`},
	"what unsubscribe ignores":     {ahp.MethodUnsubscribe, `{"channel":"ahp-terminal:/1","x":[{}`, `,{}`, `]}`},
	"what nobody knows":            {"x", `{"x":[{}`, `,{}`, `]}`},
	"members of an action":         {ahp.MethodDispatchAction, action(`"type":"terminal/resized","cols":1,"rows":1`), `,"%":{}`, `}}`},
	"an unknown action":            {ahp.MethodDispatchAction, action(`"type":"x","x":[{}`), `,{}`, `]}}`},
	"meta of an output":            {ahp.MethodDispatchAction, action(`"type":"terminal/output","data":"","_meta":{"x":1`), `,"%":{}`, `}}}`},
	"text of an output":            {ahp.MethodDispatchAction, action(`"type":"terminal/output","data":"`), `\u001b`, `"}}`},
	"a command line":               {ahp.MethodDispatchAction, action(`"type":"terminal/commandExecuted","commandId":"1","timestamp":1,"commandLine":"`), `\n`, `"}}`},
	"tools of a session's client":  {ahp.MethodDispatchAction, action(`"type":"session/activeClientSet","activeClient":{"clientId":"x","tools":[{}`), `,{}`, `]}}}`},
	"result of a tool":             {ahp.MethodDispatchAction, action(`"type":"chat/toolCallComplete","turnId":"1","toolCallId":"1","result":{"success":true,"pastTenseMessage":"x","content":[{}`), `,{}`, `]}}}`},
	"terminals of the root":        {ahp.MethodDispatchAction, action(`"type":"root/terminalsChanged","terminals":[{}`), `,{}`, `]}}`},
	"agents of the root":           {ahp.MethodDispatchAction, action(`"type":"root/agentsChanged","agents":[{}`), `,{}`, `]}}`},
	"summary of a chat":            {ahp.MethodDispatchAction, action(`"type":"session/chatAdded","summary":{"x":[{}`), `,{}`, `]}}}`},
}

func action(members string) string {
	return `{"channel":"ahp-terminal:/1","clientSeq":1,"action":{` + members
}

// largest is the largest message of a kind that the host takes.
func largest(head, element, tail string) json.RawMessage {
	var b strings.Builder
	b.WriteString(head)
	values := strings.Count(element, ",") // of one element
	for n := 0; n*values < mostValues-100 && b.Len() < longest-200; n++ {
		b.WriteString(strings.ReplaceAll(element, "%", fmt.Sprintf("%04x", n)))
	}
	b.WriteString(tail)
	return json.RawMessage(b.String())
}

// The largest message of each kind costs little memory, and so little time that other
// terminals need not wait for it. The time is compared with that of encoding/json for the
// largest message: 16 ms on a machine where a terminal may wait for at most 50 ms. A busy
// machine may stand still in any try, so only the best of many counts: what is slow by
// itself is slow in each.
func TestTheLargestMessageCostsLittle(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	yardstick := largest(`{"x":1`, `,"%`+strings.Repeat("x", 16)+`":{}`, `}`)
	decode := func() (took time.Duration) {
		began := time.Now()
		var v any
		_ = json.Unmarshal(yardstick, &v)
		return time.Since(began)
	}
	const (
		most = 32 << 20              // bytes
		tick = 16 * time.Millisecond // of the clock of Windows, which can say that something took no time
	)
	for name, c := range costly {
		t.Run(name, func(t *testing.T) {
			early := c.method == ahp.MethodInitialize || c.method == ahp.MethodReconnect
			params := largest(c.head, c.element, c.tail)
			time1, time2, cost := time.Hour, time.Hour, uint64(1<<40)
			slow := func() bool { return testkit.Load(1, 0) > 0 && time2 > 3*time1+tick } // the race detector makes both slow
			for began := time.Now(); (cost > most || slow()) && time.Since(began) < patience; {
				h := steadyHost(t, host.Options{Sessions: true})
				v := connect(t, h, "laptop", viewOptions{noInit: early})
				if !early {
					v.create("ahp-terminal:/1")
				}
				time1 = min(time1, decode())
				took, size := v.costOf(c.method, params)
				time2, cost = min(time2, took), min(cost, size)
				v.close()
				h.Close()
			}
			if cost > most {
				t.Errorf("the message costs %d MiB", cost>>20)
			}
			if slow() {
				t.Errorf("the message takes %v where encoding/json takes %v", time2, time1)
			}
		})
	}
}

// costOf is how long a message takes, and how much is allocated for it, in bytes: more
// than is in use at any time.
func (v *viewer) costOf(method string, params json.RawMessage) (time.Duration, uint64) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := time.Now()
	if method == ahp.MethodDispatchAction || method == ahp.MethodUnsubscribe {
		_ = v.peer.Notify(v.t.Context(), method, params)
		v.ping()
	} else {
		_ = v.call(method, params, nil)
	}
	took := time.Since(began)
	runtime.ReadMemStats(&after)
	return took, after.TotalAlloc - before.TotalAlloc
}

// With any number of connections that send messages that are large once decoded, the host
// decodes few at a time. The messages of others do not wait behind those of one name, and
// all have their effect in the end.
func TestFewLargeMessagesAreDecodedAtATime(t *testing.T) {
	h := steadyHost(t, host.Options{Sessions: true})
	c := costly["tools of a session's client"]
	params := largest(c.head, c.element, c.tail)
	many := testkit.Load(40, 12)
	var hostile []*viewer
	for i := range many {
		hostile = append(hostile, connectAs(t, h, rights.Principal{Name: "mallory", Role: rights.RoleMachine}, fmt.Sprint("mallory ", i)))
	}
	honest := connectAs(t, h, rights.Principal{Name: "laptop", Role: rights.RoleMachine}, "laptop")
	unlock := h.Lock() // so nobody is finished with a message
	for _, v := range hostile {
		_ = v.peer.Notify(t.Context(), ahp.MethodDispatchAction, params)
	}
	testkit.Eventually(t, testkit.Patience, "all but one message to wait", func() bool {
		used, waiting := h.Decoding()
		return used > 0 && waiting == many-1
	})
	one, _ := h.Decoding()
	_ = honest.peer.Notify(t.Context(), ahp.MethodDispatchAction, params)
	testkit.Eventually(t, testkit.Patience, "a message of another name not to wait", func() bool {
		used, waiting := h.Decoding()
		return used > one && used <= 64<<20 && waiting == many-1
	})
	unlock()
	for _, v := range append(hostile, honest) {
		v.ping()
	}
	if used, waiting := h.Decoding(); used != 0 || waiting != 0 {
		t.Errorf("in the end %d bytes are in use and %d wait", used, waiting)
	}
}

// connectAs is connect as a principal.
func connectAs(t *testing.T, h *host.Host, p rights.Principal, id string) *viewer {
	t.Helper()
	near, far := testkit.Channels()
	served := make(chan struct{})
	go func() { defer close(served); _ = host.ServeAs(h, far, p) }()
	v := newViewer(t, near, id)
	t.Cleanup(func() { v.close(); <-served })
	v.initialize(viewOptions{})
	return v
}

// inUse is how many bytes of the heap are in use.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// rawSocketAt is the socket below a connection to the host.
func rawSocketAt(t *testing.T, url string) net.Conn {
	t.Helper()
	var socket net.Conn
	ch := must.Get(wsconn.Dial(t.Context(), url, wsconn.Options{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		socket = c
		return c, err
	}}))(t)
	t.Cleanup(func() { ch.Close() })
	return socket
}

// Connections of all kinds together make the host hold the most: messages that do not
// end, of machines and of agents; snapshots and texts that nobody reads; and requests of
// agents that do not end. All of it takes less than promised, everybody else is served
// meanwhile, and in the end nothing is held.
func TestAllConnectionsTogetherTakeLittleMemory(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	const names = 3
	many := testkit.Load(60, 25) // of each kind and name
	tokens := []string{"machine-laptop", "machine-honest", "observer-honest", "operator-honest"}
	for n := range names {
		tokens = append(tokens, fmt.Sprint("machine-m", n), fmt.Sprint("observer-o", n), fmt.Sprint("operator-m", n))
	}
	h := steadyHost(t, host.Options{Access: newUsers(tokens...), Sessions: true, StallTime: time.Hour, ArrivalTime: time.Hour})
	server := httptest.NewUnstartedServer(h)
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(32 << 10) // where the system would take a whole snapshot, the host waits for nobody
		return ctx
	}
	server.Start()
	t.Cleanup(server.Close)
	url := "ws" + strings.TrimPrefix(server.URL, "http")
	owner := as(t, url, "machine-laptop", "laptop", viewOptions{resume: true})
	owner.create(uri)
	text := strings.Repeat("0123456789abcde\n", 2<<10)
	for n := range int64(33) { // more than the scrollback
		owner.output(uri, text, n*int64(len(text)))
	}
	owner.await("all of it is there", func() bool { return owner.acks[uri] == 33*int64(len(text)) })

	frame := binary.BigEndian.AppendUint64([]byte{0x81, 0x80 | 127}, longest) // RFC 6455, 5.2: text, masked
	frame = append(frame, 0, 0, 0, 0)                                         // by zeros
	frame = append(frame, strings.Repeat(" ", longest-100)...)
	address, page := strings.TrimPrefix(url, "ws://"), h.TextPath(uri)
	raw := func(head string) net.Conn {
		c := must.Get(net.Dial("tcp", address))(t)
		t.Cleanup(func() { c.Close() })
		_, _ = io.WriteString(c, head)
		return c
	}
	before := inUse()
	var all sync.WaitGroup
	var open []net.Conn
	for n := range names {
		for i := range many {
			for _, path := range []string{"?tkn=machine-m", "/mcp?tkn=operator-m"} { // messages that do not end
				socket := rawSocketAt(t, fmt.Sprint(url, path, n))
				open = append(open, socket)
				all.Go(func() { _, _ = socket.Write(frame) })
			}
			open = append(open, // texts that are not read
				raw(fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer observer-o%d\r\n\r\n", page, address, n)))
			request := raw(fmt.Sprintf("POST /mcp HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer operator-m%d\r\nContent-Length: %d\r\n\r\n", address, n, 500<<10))
			open = append(open, request)
			all.Go(func() { _, _ = request.Write(frame[14 : 499<<10]) })    // requests that do not end
			unread := rawSocketAt(t, fmt.Sprint(url, "?tkn=observer-o", n)) // snapshots that are not read
			open = append(open, unread)
			all.Go(func() {
				init := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"channel":"ahp-root://","protocolVersions":["1.0.0"],"clientId":"o-%d-%d","initialSubscriptions":[%q]}}`, n, i, uri)
				head := binary.BigEndian.AppendUint16([]byte{0x81, 0x80 | 126}, uint16(len(init)))
				_, _ = unread.Write(append(append(head, 0, 0, 0, 0), init...))
			})
		}
	}
	t.Cleanup(all.Wait)
	t.Cleanup(func() {
		for _, c := range open {
			c.Close()
		}
	})
	testkit.Eventually(t, testkit.Patience, "each kind to wait for room", func() bool {
		_, receiving := h.Receiving()
		_, sending := h.Sending()
		_, asking := h.Asked()
		return receiving >= names*(2*many-10) && sending >= names*(2*many-20) && asking >= names*(many-10)
	})
	grown := int64(inUse()) - int64(before)
	t.Logf("%d connections make the host hold %d MiB", len(open), grown>>20)
	if grown > 160<<20 { // received, sent and requested data may take 112 MiB, and each connection some KiB
		t.Errorf("%d connections make the host hold %d MiB", len(open), grown>>20)
	}

	other := as(t, url, "observer-honest", "other", viewOptions{})
	if err := other.subscribe(uri); err != nil {
		t.Errorf("an observer of another name: %v", err)
	}
	machine := as(t, url, "machine-honest", "machine", viewOptions{resume: true})
	machine.create("ahp-terminal:/honest")
	var sent int64
	for _, size := range []int{1 << 10, 60 << 10} {
		machine.output("ahp-terminal:/honest", strings.Repeat("x", size), sent)
		sent += int64(size)
		machine.await("the acknowledgement", func() bool { return machine.acks["ahp-terminal:/honest"] == sent })
	}
	_ = machine.peer.Notify(t.Context(), "x", strings.Repeat("x", longest-100))
	machine.ping()

	for _, c := range open {
		c.Close()
	}
	all.Wait()
	testkit.Eventually(t, testkit.Patience, "nothing is held", func() bool {
		held := 0
		for _, share := range []func() (int, int){h.Receiving, h.Decoding, h.Sending, h.Asked} {
			bytes, waiting := share()
			held += bytes + waiting
		}
		return held == 0
	})
}

// Requests of agents are as long as the host has room for, and are told when they are
// not.
func TestLongRequestsOfAgents(t *testing.T) {
	h, url := serve(t, host.Options{Access: newUsers("operator-a"), Sessions: true})
	ask := func(body string) (status int, text string) {
		r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http"+strings.TrimPrefix(url, "ws")+"/mcp", strings.NewReader(body)))(t)
		r.Header.Set("Authorization", "Bearer operator-a")
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		answer := must.Get(http.DefaultClient.Do(r))(t)
		defer answer.Body.Close()
		said := must.Get(io.ReadAll(answer.Body))(t)
		return answer.StatusCode, string(said)
	}
	call := func(argument string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"x","version":"1","x":` + argument + `}}}`
	}
	for _, c := range []struct {
		argument string
		status   int
	}{
		{`""`, http.StatusOK},
		{`"` + strings.Repeat("x", 400<<10) + `"`, http.StatusOK},
		{`"` + strings.Repeat("x", 600<<10) + `"`, http.StatusRequestEntityTooLarge},
		{`[0` + strings.Repeat(",0", 100<<10) + `]`, http.StatusRequestEntityTooLarge},
	} {
		status, text := ask(call(c.argument))
		if status != c.status || status != http.StatusOK && !strings.Contains(text, "too long, or has too many JSON values") {
			t.Errorf("%.40s… of %d bytes is answered %d %.100s, want %d", c.argument, len(c.argument), status, text, c.status)
		}
	}
	if held, waiting := h.Asked(); held != 0 || waiting != 0 {
		t.Errorf("in the end %d bytes are held, and %d wait", held, waiting)
	}
	http.DefaultClient.CloseIdleConnections()
}

// Another machine's output reaches its observers while the largest messages of each kind
// arrive, one after the other, and is late by no more than 50 ms. A busy test machine may
// stand still for longer: so the longest delay is compared with the longest of the same
// run while encoding/json decodes the largest message as often, which needs one processor
// as these messages do, but no part of the host.
func TestTheLargestMessagesDelayNobody(t *testing.T) {
	const late = 50 * time.Millisecond
	yardstick := largest(`{"x":1`, `,"%`+strings.Repeat("x", 16)+`":{}`, `}`)
	left := testkit.Load(len(costly), 4) // with the race detector a few of them, each time others
	for name, c := range costly {
		if c.method == ahp.MethodInitialize || c.method == ahp.MethodReconnect {
			continue // one for each connection; TheLargestMessageCostsLittle has them
		}
		if left--; left < 0 {
			break
		}
		t.Run(name, func(t *testing.T) {
			h := steadyHost(t, host.Options{Sessions: true})
			owner, observer := connect(t, h, "owner", viewOptions{}), connect(t, h, "observer", viewOptions{})
			owner.create(uri)
			must.Do(t, observer.subscribe(uri))
			printed := 0
			// delay prints small pieces while do runs and returns how long the observer
			// waited for one at most.
			delay := func(do func()) (most time.Duration) {
				done := make(chan struct{})
				go func() { defer close(done); do() }()
				for {
					began := time.Now()
					owner.output(uri, "x", int64(printed))
					printed++
					observer.await("what is printed", func() bool { return observer.text[uri].Len() >= printed })
					most = max(most, time.Since(began))
					select {
					case <-done:
						return most
					default:
					}
				}
			}
			hostile, params := connect(t, h, "hostile", viewOptions{}), largest(c.head, c.element, c.tail)
			hostile.create("ahp-terminal:/1")
			times := testkit.Load(3, 1)
			json1, host1 := time.Hour, time.Hour
			for range 10 { // the best of them, until one is good enough: something else may run
				host1 = min(host1, delay(func() {
					for range times {
						hostile.costOf(c.method, params)
					}
				}))
				if host1 <= late || testkit.Load(1, 0) == 0 { // the race detector makes all of it slow
					return
				}
				json1 = min(json1, delay(func() {
					for range times {
						var v any
						_ = json.Unmarshal(yardstick, &v)
					}
				}))
				if host1 <= json1+late {
					return
				}
			}
			t.Errorf("what is printed is late by %v, and by %v beside encoding/json", host1, json1)
		})
	}
}

// A caller is an agent's session over a WebSocket.
type caller struct {
	t    *testing.T
	conn *wsconn.Conn
}

func newCaller(t *testing.T, url, token string) *caller {
	t.Helper()
	conn := must.Get(wsconn.Dial(t.Context(), url+"/mcp", wsconn.Options{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}, WriteTimeout: time.Minute}))(t)
	t.Cleanup(func() { conn.Close() })
	c := &caller{t, conn}
	c.say(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
	if code, text := c.hear("init"); code != 0 {
		t.Fatal(code, text)
	}
	c.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return c
}

func (c *caller) say(line string) { _ = c.conn.Send(c.t.Context(), []byte(line)) }

// call calls a tool, with so many bytes that the tool ignores.
func (c *caller) call(id int, tool, args, beside string) {
	c.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":"%d","method":"tools/call","params":{"name":%q,"arguments":%s,"_meta":{"x":%s}}}`, id, tool, args, beside))
}

// hear waits for the answer to a call: an error, or the code 0 and the result.
func (c *caller) hear(id string) (code int, text string) {
	c.t.Helper()
	for {
		line := must.Get(c.conn.Recv(c.t.Context()))(c.t)
		var m struct {
			ID     string
			Result json.RawMessage
			Error  struct {
				Code    int
				Message string
			}
		}
		must.Do(c.t, json.Unmarshal(line, &m))
		if m.ID == id {
			return m.Error.Code, m.Error.Message + string(m.Result)
		}
	}
}

// waitCall is a call that is not answered soon: a machine's terminal does not exit.
func waitCall(t *testing.T, url string) (args string) {
	t.Helper()
	as(t, url, "machine-laptop", "laptop", viewOptions{resume: true}).create(uri)
	looker := must.Get(overLines(t, url, "agent-honest", nil))(t)
	var all []listed
	use(t, looker, "list_terminals", nil, &all)
	return fmt.Sprintf(`{"terminalId":%q,"timeoutMs":600000}`, all[0].ID)
}

// Calls of agents that are being carried out take no more memory than requests over HTTP,
// however many sessions have however many of them. An agent of another name is served
// meanwhile, and in the end nothing is held.
func TestCallsOfAgentsTakeLittleMemory(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	const names, sessions = 3, 4 // of each
	calls := testkit.Load(6, 4)  // of each session: together more than the bound below
	tokens := []string{"machine-laptop", "agent-honest"}
	for n := range names {
		tokens = append(tokens, fmt.Sprint("agent-a", n))
	}
	h, url := serve(t, host.Options{Access: newUsers(tokens...)})
	args, long := waitCall(t, url), `"`+strings.Repeat("x", 900<<10)+`"`
	var open []*caller
	for n := range names {
		for range sessions {
			open = append(open, newCaller(t, url, fmt.Sprint("agent-a", n)))
		}
	}
	before := inUse()
	var all sync.WaitGroup
	for _, c := range open {
		all.Go(func() {
			for id := range calls {
				c.call(id, "wait_terminal", args, long)
			}
			c.say(`{"jsonrpc":"2.0","id":"last","method":"ping"}`)
			if code, text := c.hear("last"); code != 0 {
				t.Errorf("a short call is answered %d %.200s", code, text)
			}
		})
	}
	all.Wait()
	if held, _ := h.Asked(); held < names*4*(900<<10) {
		t.Errorf("calls hold %d bytes, want one of each name under way", held)
	}
	grown := int64(inUse()) - int64(before)
	t.Logf("%d calls of %d KiB make the host hold %d MiB", names*sessions*calls, len(long)>>10, grown>>20)
	if grown > 32<<20 { // the calls may take 16 MiB
		t.Errorf("%d calls make the host hold %d MiB", names*sessions*calls, grown>>20)
	}
	honest := newCaller(t, url, "agent-honest")
	honest.call(1, "list_terminals", `{}`, long)
	if code, text := honest.hear("1"); code != 0 || !strings.Contains(text, "laptop") {
		t.Errorf("an agent of another name is answered %d %.200s", code, text)
	}
	for _, c := range open {
		c.conn.Close()
	}
	testkit.Eventually(t, testkit.Patience, "nothing is held", func() bool {
		held, _ := h.Asked()
		return held == 0
	})
}

// A call for which there is no room, or that is too long, is answered with an error. A
// session still has one short call, and there is room again when a call has ended.
func TestCallsThatHaveNoRoomAreRefused(t *testing.T) {
	h, url := serve(t, host.Options{Access: newUsers("machine-laptop", "agent-honest", "agent-a")})
	args, long := waitCall(t, url), `"`+strings.Repeat("x", 900<<10)+`"`
	first, second := newCaller(t, url, "agent-a"), newCaller(t, url, "agent-a")
	first.call(1, "wait_terminal", args, long)
	testkit.Eventually(t, testkit.Patience, "the first call to be under way", func() bool {
		held, _ := h.Asked()
		return held >= len(long) // less may be a message of a handshake
	})
	second.call(1, "list_terminals", `{}`, long)
	if code, text := second.hear("1"); code != -32000 || !strings.Contains(text, "too many requests of agents") {
		t.Errorf("a call without room is answered %d %.200s", code, text)
	}
	second.call(2, "list_terminals", `{}`, `[0`+strings.Repeat(",0", 30<<10)+`]`)
	if code, text := second.hear("2"); code != -32600 || !strings.Contains(text, "too many JSON values") {
		t.Errorf("a call that is too long is answered %d %.200s", code, text)
	}
	second.call(3, "list_terminals", `{}`, `""`)
	if code, text := second.hear("3"); code != 0 {
		t.Errorf("a short call is answered %d %.200s", code, text)
	}
	first.conn.Close()
	testkit.Eventually(t, testkit.Patience, "the first call to have ended", func() bool {
		held, _ := h.Asked()
		return held == 0
	})
	second.call(4, "list_terminals", `{}`, long)
	if code, text := second.hear("4"); code != 0 {
		t.Errorf("when there is room again, a call is answered %d %.200s", code, text)
	}
}

// What a connection takes it gives back at its end, also if another goroutine was about
// to send for it.
func TestNothingIsTakenAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{})
		owner := connect(t, h, "laptop", viewOptions{})
		owner.create(uri)
		owner.output(uri, strings.Repeat("x", 100<<10), -1)
		near, far := testkit.Channels()
		served := make(chan struct{})
		go func() { defer close(served); _ = h.ServeChannel(context.Background(), far) }()
		init, _ := json.Marshal(ahp.InitializeParams{Channel: ahp.RootURI, ProtocolVersions: ahp.Versions(), ClientID: "viewer"})
		must.Do(t, near.Send(t.Context(), []byte(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":`+string(init)+`}`)))
		for _, msg := range []string{ // the second answer is not taken, so that the third one waits
			`{"jsonrpc":"2.0","id":1,"method":"ping"}`,
			`{"jsonrpc":"2.0","id":2,"method":"subscribe","params":{"channel":"` + uri + `"}}`,
		} {
			must.Do(t, near.Send(t.Context(), []byte(msg)))
			synctest.Wait()
		}
		pull := h.Straggler()
		if pull == nil {
			t.Fatal("no reply waits")
		}
		near.Close()
		<-served
		pull()
		if used, _ := h.Sending(); used != 0 {
			t.Errorf("%d bytes are never given back", used)
		}
	})
}
