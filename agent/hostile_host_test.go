package agent_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// The largest contents of one message of a host, and some room for the rest of it.
const (
	hostileValues = client.LenderMaxValues - 100
	hostileBytes  = client.LenderReadLimit - client.LenderReadLimit/8
)

// hostileActions are actions that a host may send, with an object or a text that is as
// large as a message may be.
var hostileActions = []string{
	`"x","x":OBJECT`,
	`"terminal/data","data":"TEXT"`, `"terminal/output","data":"TEXT"`, `"terminal/output","data":"x","_meta":OBJECT`, `"terminal/input","data":"TEXT"`,
	`"terminal/resized","cols":1,"rows":1,"x":OBJECT`, `"terminal/claimed","claim":OBJECT`, `"terminal/titleChanged","title":"TEXT"`,
	`"terminal/cwdChanged","cwd":"TEXT"`, `"terminal/cleared","x":OBJECT`, `"terminal/commandDetectionAvailable","x":OBJECT`,
	`"terminal/commandExecuted","commandId":"1","timestamp":1,"commandLine":"TEXT"`, `"terminal/commandFinished","commandId":"1","x":OBJECT`,
	`"root/agentsChanged","agents":LIST`, `"root/activeSessionsChanged","activeSessions":1,"x":OBJECT`, `"root/terminalsChanged","terminals":LIST`,
	`"root/configChanged","config":OBJECT`,
	`"session/ready","x":OBJECT`, `"session/titleChanged","title":"TEXT"`, `"session/activityChanged","activity":"TEXT"`, `"session/serverToolsChanged","tools":LIST`,
	`"session/activeClientSet","activeClient":{"clientId":"x","tools":LIST}`, `"session/activeClientRemoved","clientId":"TEXT"`,
	`"session/inputNeededSet","request":{"kind":"toolClientExecution","id":"x","toolCall":{"_meta":OBJECT}}`, `"session/inputNeededRemoved","id":"TEXT"`,
	`"chat/turnStarted","turnId":"1","x":OBJECT`, `"chat/delta","content":"TEXT"`, `"chat/responsePart","part":OBJECT`, `"chat/toolCallStart","_meta":OBJECT`,
	`"chat/toolCallComplete","result":{"content":LIST}`,
}

// hostileCalls are other notifications, requests and an answer to nothing that a host may
// send.
var hostileCalls = []string{
	`"method":"x-tether/ack","params":OBJECT`, `"method":"x-tether/observers","params":OBJECT`, `"method":"x","params":OBJECT`, `"method":"action","params":OBJECT`,
	`"method":"root/sessionAdded","params":{"summary":OBJECT}`, `"method":"root/sessionRemoved","params":{"session":"TEXT"}`,
	`"method":"root/sessionSummaryChanged","params":{"session":"ahp-session:/1","changes":OBJECT}`,
	`"id":"a","method":"createTerminal","params":OBJECT`, `"id":"b","method":"x","params":LIST`, `"id":4711,"result":OBJECT`,
}

// hostileHost is a host that sends a machine its largest messages.
type hostileHost struct {
	*toolHost
	machine *laptop
	session string // URI
	fill    *strings.Replacer
	sent    int
}

func newHostileHost(t *testing.T) *hostileHost {
	h := newToolHost(t)
	h.spoilAnswers(map[string]func(string) string{})
	l := newLaptop(t, h, nil)
	session := h.session().URI()
	l.tools(true, 1)
	list := "[" + strings.TrimSuffix(strings.Repeat("{},", hostileValues), ",") + "]"
	return &hostileHost{toolHost: h, machine: l, session: session,
		fill: strings.NewReplacer("OBJECT", string(testkit.LargeObject(hostileValues, hostileBytes)), "LIST", list, "TEXT", strings.Repeat(`\u001b`, hostileBytes/6))}
}

// spoilAnswers replaces the answers to these methods from now on.
func (h *toolHost) spoilAnswers(spoil map[string]func(channel string) string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spoilt, h.spoils = spoil, map[string]int{}
}

// say sends a message, and returns when the machine has taken it: it answers in order, or
// has hung up.
func (h *hostileHost) say(message string) {
	h.sent++
	id := fmt.Sprintf("said %d", h.sent)
	h.mu.Lock()
	w := h.wires[len(h.wires)-1]
	h.mu.Unlock()
	for _, m := range []string{message, fmt.Sprintf(`"id":%q,"method":"nobody knows"`, id)} {
		if m != "" && w.Send(h.t.Context(), []byte(`{"jsonrpc":"2.0",`+m+`}`)) != nil {
			return
		}
	}
	testkit.Eventually(h.t, patience, "the machine answers or has hung up", func() bool {
		select {
		case <-w.gone:
			if message != "" {
				h.t.Errorf("the machine has hung up after %.80s", message)
			}
			return true
		default:
			return len(h.saidOf(`"`+id+`"`)) > 0
		}
	})
}

// online lets the machine connect anew, unless it is connected and its tools are offered
// to the session.
func (h *hostileHost) online() {
	h.spoilAnswers(map[string]func(string) string{})
	well := func(s localapi.Status) bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.wires) > 0 && s.Hosts[0].State == "online" && s.Hosts[0].Tools.Sessions == 1
	}
	if s, err := h.machine.client.Status(h.t.Context()); err == nil && well(s) {
		return
	}
	h.cut()
	h.machine.status("the link", func(s localapi.Status) bool {
		if !well(s) {
			h.retry()
		}
		return well(s)
	})
}

// retry makes the machine connect now, if it does not.
func (h *hostileHost) retry() {
	_, _ = h.machine.client.ChangeHost(h.t.Context(), "lab", localapi.HostChange{Retry: true})
}

// answer gives the machine a result as soon as it asks, which it does after its
// connection was cut.
func (h *hostileHost) answer(method, result string) {
	prefix := "ahp-session:/"
	if strings.Contains(result, "ahp-terminal:/1") {
		prefix = "ahp-terminal:/"
	}
	spoil := map[string]func(string) string{method: func(channel string) string {
		if method == ahp.MethodSubscribe && !strings.HasPrefix(channel, prefix) {
			return ""
		}
		return `"result":` + strings.NewReplacer("ahp-terminal:/1", channel, "ahp-session:/1", channel, "ahp-chat:/1", channel, ahp.RootURI, channel).Replace(result)
	}}
	if method != ahp.MethodReconnect { // everything is asked for anew
		spoil[ahp.MethodReconnect] = func(string) string { return `"error":{"code":-32603,"message":"no"}` }
	}
	h.online()
	h.spoilAnswers(spoil)
	h.cut()
	testkit.Eventually(h.t, patience, "the machine asks", func() bool {
		h.mu.Lock()
		asked := h.spoils[method] > 0
		h.mu.Unlock()
		if !asked {
			h.retry()
		}
		return asked
	})
	h.say("")
	h.cut() // its present state is of no use
}

// deeds are such a host's possible actions, with the largest message of each kind. The
// results of further methods are ignored as createTerminal's is.
func (h *hostileHost) deeds() map[string]func() {
	deeds := map[string]func(){}
	for name, a := range testkit.HostileAnswers {
		deeds[name] = func() { h.answer(a.Method, string(a.Result(hostileValues))) }
	}
	for _, method := range []string{ahp.MethodListSessions, ahp.MethodCreateTerminal} {
		deeds["what is ignored of "+method] = func() { h.answer(method, h.fill.Replace("OBJECT")) }
	}
	for _, action := range hostileActions {
		channel := ahp.RootURI
		switch kind, _, _ := strings.Cut(action[1:], "/"); kind {
		case "terminal":
			channel = h.terminal()
		case "session":
			channel = h.session
		case "chat":
			channel = "ahp-chat:/1"
		}
		deeds[action] = func() {
			h.online()
			h.say(fmt.Sprintf(`"method":"action","params":{"channel":%q,"serverSeq":1,"action":{"type":%s}}`, channel, h.fill.Replace(action)))
		}
	}
	for _, call := range hostileCalls {
		deeds[call] = func() {
			h.online()
			h.say(h.fill.Replace(call))
		}
	}
	return deeds
}

// terminal is the URI under which the host has the machine's terminal.
func (h *hostileHost) terminal() (uri string) {
	h.machine.status("the terminal is lent", func(s localapi.Status) bool {
		if len(s.Hosts[0].Lent) == 1 {
			uri = s.Hosts[0].Lent[0].URI
		}
		return uri != ""
	})
	return uri
}

// echoes prints small pieces in a terminal and reads them through the daemon's socket
// while do runs. It returns how long one took at most.
func echoes(t *testing.T, child *testkit.Child, out io.Reader, do func()) (most time.Duration) {
	t.Helper()
	over, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		piece := make([]byte, 2)
		for {
			began := time.Now()
			child.Print("x\n")
			if _, err := io.ReadFull(out, piece); err != nil {
				ended <- err
				return
			}
			most = max(most, time.Since(began))
			select {
			case <-over:
				ended <- nil
				return
			default:
			}
		}
	}()
	do()
	close(over)
	must.Do(t, <-ended)
	return most
}

// A terminal's output is read while a host sends its largest messages, and is late by no
// more than 50 ms. A busy test machine may stand still for longer, so the longest delay
// is compared with the longest of the same run while encoding/json decodes the largest
// message: that needs one processor as these messages do, but no part of the daemon.
func TestTheLargestMessagesOfAHostDelayNoTerminal(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	const late = 50 * time.Millisecond
	yardstick := testkit.LargeObject(hostileValues, hostileBytes)
	h := newHostileHost(t)
	c := h.machine.client
	private := must.Get(c.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/"), Private: true}))(t)
	child := <-h.machine.children
	must.Get(c.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/"), LendTo: []string{"lab"}}))(t)
	<-h.machine.children
	out := must.Get(c.Read(t.Context(), private.ID, localclient.ReadOptions{Follow: true}, nil))(t)
	t.Cleanup(func() { out.Close() })
	left := testkit.Load(1000, 6) // with the race detector a few of them, each time others
	for name, deed := range h.deeds() {
		if left--; left < 0 {
			break
		}
		t.Run(name, func(t *testing.T) {
			json1, host1 := time.Hour, time.Hour
			for range 10 { // the best of them, until one is good enough: something else may run
				host1 = min(host1, echoes(t, child, out, deed))
				if host1 <= late || testkit.Load(1, 0) == 0 { // the race detector makes all of it slow
					return
				}
				json1 = min(json1, echoes(t, child, out, func() {
					var v any
					_ = json.Unmarshal(yardstick, &v)
				}))
				if host1 <= json1+late {
					return
				}
			}
			t.Errorf("what is printed is late by %v, and by %v beside encoding/json", host1, json1)
		})
	}
}
