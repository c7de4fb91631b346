package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/agent"
	"tether/agent/config"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/host/sessions"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
	"tether/jsonrpc/wsconn"
	"tether/platform/dirs"
	"tether/platform/pty"
)

// toolHost is a host with sessions that keeps the machines' messages.
type toolHost struct {
	*host.Host
	t   *testing.T
	url string

	mu     sync.Mutex
	said   []string // messages of machines
	wires  []*heard
	spoilt map[string]func(channel string) string // by method: the "result" or "error" member that goes out instead, "" for the host's own
	spoils map[string]int                         // answers that were replaced, by method
}

func newToolHost(t *testing.T) *toolHost {
	t.Helper()
	h := &toolHost{Host: host.New(host.Options{Sessions: true, Grace: time.Minute}), t: t}
	h.url = serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ch, err := wsconn.Accept(w, r, wsconn.Options{})
		if err != nil {
			return // the client is gone
		}
		c := &heard{Channel: ch, h: h, asked: map[string]asked{}, gone: make(chan struct{})}
		h.mu.Lock()
		h.wires = append(h.wires, c)
		h.mu.Unlock()
		_ = h.ServeChannel(r.Context(), c) // ends with the connection
	}))
	t.Cleanup(h.Close)
	return h
}

// heard is a machine's channel.
type heard struct {
	jsonrpc.Channel
	h    *toolHost
	gone chan struct{} // closed when the machine has hung up

	sending sync.Mutex       // held while a message is sent
	asked   map[string]asked // requests of the machine by id; guarded by h.mu
}

// asked is a request.
type asked struct{ method, channel string }

func (c *heard) Recv(ctx context.Context) ([]byte, error) {
	msg, err := c.Channel.Recv(ctx)
	if err != nil {
		close(c.gone) // the host receives no more
		return msg, err
	}
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	c.h.said = append(c.h.said, string(msg))
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Channel string }
	}
	if c.h.spoilt != nil && json.Unmarshal(msg, &m) == nil && m.Method != "" {
		c.asked[string(m.ID)] = asked{m.Method, m.Params.Channel}
	}
	return msg, nil
}

func (c *heard) Send(ctx context.Context, msg []byte) error {
	msg = c.spoiled(msg)
	c.sending.Lock()
	defer c.sending.Unlock()
	return c.Channel.Send(ctx, msg)
}

// spoiled is sent instead of msg. A connection that was cut has no use for it: what is
// still answered there is not counted.
func (c *heard) spoiled(msg []byte) []byte {
	c.h.mu.Lock()
	defer c.h.mu.Unlock()
	var m struct {
		ID     json.RawMessage
		Method string
	}
	if c.h.spoilt == nil || json.Unmarshal(msg, &m) != nil || m.Method != "" || !slices.Contains(c.h.wires, c) {
		return msg
	}
	r := c.asked[string(m.ID)]
	delete(c.asked, string(m.ID))
	if spoil := c.h.spoilt[r.method]; spoil != nil {
		if member := spoil(r.channel); member != "" {
			c.h.spoils[r.method]++
			return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, member)
		}
	}
	return msg
}

// cut breaks the connections of all machines.
func (h *toolHost) cut() {
	h.mu.Lock()
	wires := h.wires
	h.wires = nil
	h.mu.Unlock()
	for _, ch := range wires {
		ch.Close()
	}
}

// saidOf are the messages so far that hold one of the words.
func (h *toolHost) saidOf(words ...string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(h.said), func(msg string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return strings.Contains(msg, w) })
	})
}

// session makes a session in which an agent works.
func (h *toolHost) session() *sessions.Caller {
	h.t.Helper()
	return must.Get(h.NewSession("fix the tests"))(h.t)
}

// laptop is a daemon with terminals whose children the test plays, paired with a host as
// "lab".
type laptop struct {
	*daemon
	host     *toolHost
	dirs     dirs.Dirs
	config   agent.Config
	children chan *testkit.Child
}

func newLaptop(t *testing.T, h *toolHost, change func(*config.Config)) *laptop {
	t.Helper()
	settings := config.Default()
	settings.Policy.AskTimeout = config.Duration(time.Hour)
	settings.Policy.Limits.SpawnsPerMinute = 100
	if change != nil {
		change(&settings)
	}
	l := &laptop{host: h, dirs: home(t), children: make(chan *testkit.Child, 10)}
	l.config = agent.Config{Dirs: l.dirs, Settings: &settings, Terminals: term.Options{Start: func(term.ID, pty.Command) (term.PTY, error) {
		c := testkit.NewChild()
		l.children <- c
		return c, nil
	}}}
	l.daemon = start(t, l.config)
	must.Get(l.client.Pair(t.Context(), localapi.PairRequest{URL: h.url, Name: "lab"}))(t)
	l.status("the link", func(s localapi.Status) bool { return s.Hosts[0].State == "online" })
	return l
}

// tools switches them, and waits until that many sessions are offered them.
func (l *laptop) tools(on bool, sessions int) {
	l.t.Helper()
	must.Get(l.client.ChangeHost(l.t.Context(), "lab", localapi.HostChange{Tools: &on}))(l.t)
	l.offered(on, sessions)
}

func (l *laptop) offered(on bool, sessions int) {
	l.t.Helper()
	l.status("the tools are offered, or not", func(s localapi.Status) bool {
		return s.Hosts[0].Tools.On == on && s.Hosts[0].Tools.Sessions == sessions
	})
}

// clientID is the one under which the host knows it.
func (l *laptop) clientID() string {
	l.t.Helper()
	data := must.Get(os.ReadFile(filepath.Join(l.dirs.State, "hosts.json")))(l.t)
	var f struct {
		Hosts []struct {
			ClientID string `json:"client_id"`
		} `json:"hosts"`
	}
	must.Do(l.t, json.Unmarshal(data, &f))
	return f.Hosts[0].ClientID
}

// called is a call under way.
type called struct {
	result ahp.ToolResult
	err    error
}

// call has an agent call a tool, once the host has heard of it.
func (l *laptop) call(s *sessions.Caller, tool, args string) chan called {
	l.t.Helper()
	var state ahp.SessionState
	l.host.await(s.URI(), "the tools", &state, func() bool { return len(state.ActiveClients) == 1 })
	ctx, cancel := context.WithTimeout(l.t.Context(), patience)
	l.t.Cleanup(cancel)
	done := make(chan called, 1)
	request := sessions.ToolRequest{ClientID: l.clientID(), Name: tool, Arguments: json.RawMessage(args), Agent: "helper"}
	go func() {
		r, err := s.CallTool(ctx, request)
		done <- called{r, err}
	}()
	return done
}

// answer waits for a result that is a success.
func (l *laptop) answer(s *sessions.Caller, tool, args string) (text string, terminal *ahp.TerminalBlock) {
	l.t.Helper()
	return l.good(<-l.call(s, tool, args))
}

func (l *laptop) good(c called) (text string, terminal *ahp.TerminalBlock) {
	l.t.Helper()
	if c.err != nil || !c.result.Success {
		l.t.Fatalf("the call: %v, %+v", c.err, c.result)
	}
	for _, block := range c.result.Content {
		if block.Terminal != nil {
			terminal = block.Terminal
		}
	}
	return c.result.Content[0].Text, terminal
}

// approve says yes to the one question there is.
func (l *laptop) approve() localapi.Approval {
	l.t.Helper()
	var asked localapi.Approval
	testkit.Eventually(l.t, patience, "a question", func() bool {
		all, err := l.client.Approvals(l.t.Context(), nil)
		if err != nil || len(all.Approvals) != 1 || all.Approvals[0].State != "waiting" {
			return false
		}
		asked = all.Approvals[0]
		return true
	})
	must.Get(l.client.Approve(l.t.Context(), asked.ID, true, 0))(l.t)
	return asked
}

// spawnText are the arguments that start npm.
func spawnText() string {
	raw, _ := json.Marshal(map[string]any{"cwd": testkit.Abs("/"), "command": []string{"npm", "run", "dev"}})
	return string(raw)
}

// An agent at a host asks for a command; the person says yes; its terminal is lent to the
// host and stands in the answer; it is waited for, read and ended.
func TestAnAgentAtAHost(t *testing.T) {
	h := newToolHost(t)
	l := newLaptop(t, h, func(c *config.Config) { c.Lend.RedactPatterns = []string{"canary-[a-z]+"} })
	s := h.session()
	l.tools(true, 1)

	var state ahp.SessionState
	h.await(s.URI(), "the tools", &state, func() bool { return len(state.ActiveClients) == 1 })
	var names []string
	for _, tool := range state.ActiveClients[0].Tools {
		if names = append(names, tool.Name); tool.Validate() != nil || tool.Title == "" || len(tool.InputSchema) == 0 {
			t.Errorf("offered is %+v: %v", tool, tool.Validate())
		}
	}
	if slices.Sort(names); strings.Join(names, " ") != "kill_terminal list_terminals read_terminal spawn_background_terminal wait_terminal" {
		t.Errorf("offered are %v", names)
	}
	spawned := l.call(s, "spawn_background_terminal", spawnText())
	asked := l.approve()
	if !strings.HasPrefix(asked.Actor, "agent lab/") || asked.Who != `agent "helper" at lab` || asked.Door != "ahp" || strings.Join(asked.Argv, " ") != "npm run dev" {
		t.Errorf("the question is %+v", asked)
	}
	text, block := l.good(<-spawned)
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(text), &made); err != nil || block == nil {
		t.Fatalf("%v in %s, block %+v", err, text, block)
	}
	child := <-l.children
	child.Print("listening, the key is canary-secret\r\n")
	waited, _ := l.answer(s, "wait_terminal", `{"terminalId":"`+made.ID+`","pattern":"listening","timeoutMs":60000}`)
	if !strings.Contains(waited, `"reason":"pattern"`) || strings.Contains(waited, "canary-secret") {
		t.Errorf("it waited: %s", waited)
	}
	var shown ahp.TerminalState
	h.await(block.Resource, "the terminal's output", &shown, func() bool { return strings.Contains(contentOf(shown), "\n") })
	if shown.ExecutionTarget != ahp.TargetClient || !strings.Contains(contentOf(shown), "listening, the key is ***") {
		t.Errorf("at the host it is %+v", shown)
	}
	must.Get(l.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/"), Private: true}))(t)
	<-l.children
	if got, _ := l.answer(s, "list_terminals", `{}`); strings.Count(got, `"id"`) != 1 || !strings.Contains(got, made.ID) {
		t.Errorf("it sees %s", got)
	}
	killed := l.call(s, "kill_terminal", `{"terminalId":"`+made.ID+`"}`)
	l.good(<-killed)
	if read, block := l.answer(s, "read_terminal", `{"terminalId":"`+made.ID+`"}`); !strings.Contains(read, `"exited":true`) || block == nil || block.Result == nil || *block.Result.ExitCode != 137 {
		t.Errorf("afterwards it reads %s, %+v", read, block)
	}
	if len(h.saidOf("canary-secret")) != 0 {
		t.Error("a secret has left the machine")
	}
	l.audited(t, made.ID)
}

// audited checks that there is a line for each call, without any output.
func (l *laptop) audited(t *testing.T, id string) {
	t.Helper()
	var data []byte
	for _, want := range []string{"spawn_background_terminal done", "wait_terminal done", "list_terminals done", "kill_terminal done", "read_terminal done", `"tools"`} {
		testkit.Eventually(t, patience, want+" in the audit log", func() bool {
			data, _ = os.ReadFile(agent.AuditPath(l.dirs))
			return strings.Contains(string(data), want)
		})
	}
	if !strings.Contains(string(data), `"actor":"agent:lab/`) || !strings.Contains(string(data), `"who":"agent \"helper\" at lab"`) || !strings.Contains(string(data), id) {
		t.Errorf("the audit log does not say who, or which terminal:\n%s", data)
	}
	log := must.Get(os.ReadFile(agent.LogPath(l.dirs)))(t)
	for name, text := range map[string][]byte{"audit log": data, "log": log} {
		for _, word := range []string{"canary", "listening"} {
			if strings.Contains(string(text), word) {
				t.Errorf("the %s holds %q", name, word)
			}
		}
	}
}

// await waits until the state of a channel, as everybody at the host may see it, is as ok
// wants it.
func (h *toolHost) await(uri, what string, state any, ok func() bool) {
	h.t.Helper()
	near, far := testkit.Channels()
	ctx, cancel := context.WithCancel(h.t.Context())
	defer cancel()
	go h.ServeChannel(ctx, far) // ends with the pipe
	conn := must.Get(client.ConnectChannel(ctx, near, client.Options{ClientID: "viewer"}))(h.t)
	defer conn.Close()
	testkit.Eventually(h.t, patience, what+" at the host", func() bool {
		r := must.Get(conn.Subscribe(ctx, uri))(h.t)
		reflect.ValueOf(state).Elem().SetZero()
		must.Do(h.t, json.Unmarshal(r.Snapshot.State, state))
		return ok()
	})
}

func contentOf(s ahp.TerminalState) (text string) {
	for _, part := range s.Content {
		text += part.Text()
	}
	return text
}

// A call outlives its connection, and is answered on the next one, once.
func TestACallOutlivesItsLink(t *testing.T) {
	h := newToolHost(t)
	l := newLaptop(t, h, nil)
	s := h.session()
	l.tools(true, 1)
	spawned := l.call(s, "spawn_background_terminal", spawnText())
	l.approve()
	text, _ := l.good(<-spawned)
	child := <-l.children
	var made struct{ ID string }
	must.Do(t, json.Unmarshal([]byte(text), &made))
	waiting := l.call(s, "wait_terminal", `{"terminalId":"`+made.ID+`","pattern":"ready","timeoutMs":600000}`)
	l.status("the call", func(s localapi.Status) bool { return s.Hosts[0].Tools.Running == 1 })
	h.cut()
	l.status("the next connection", func(s localapi.Status) bool {
		return s.Hosts[0].State == "online" && s.Hosts[0].Tools.Sessions == 1 && len(h.saidOf("session/activeClientSet")) == 2
	})
	if s := l.status("the call goes on", func(s localapi.Status) bool { return s.Hosts[0].Tools.Running == 1 }); s.Hosts[0].Tools.Calls != 1 {
		t.Errorf("status %+v", s.Hosts[0].Tools)
	}
	child.Print("ready\r\n")
	if got, _ := l.good(<-waiting); !strings.Contains(got, `"reason":"pattern"`) {
		t.Errorf("it waited: %s", got)
	}
	if n := len(h.saidOf("chat/toolCallComplete")); n != 2 {
		t.Errorf("%d answers were given, want one for each of the two calls", n)
	}
}

// Unless the person has switched them on for a host, not one message to it is about
// sessions, whatever happens there; nor after they were switched off.
func TestToolsAreOffByDefault(t *testing.T) {
	h := newToolHost(t)
	s := h.session()
	l := newLaptop(t, h, nil)
	must.Get(l.client.Spawn(t.Context(), localapi.SpawnRequest{Command: []string{"x"}, Cwd: testkit.Abs("/")}))(t)
	child := <-l.children
	h.session()
	child.Print("hello\r\n")
	child.End(0)
	l.status("all is told", func(s localapi.Status) bool { return s.Hosts[0].Unacked == 0 && len(s.Hosts[0].Lent) == 0 })
	words := []string{"session", "Session", "chat", "tool", ahp.MethodListSessions}
	if got := h.saidOf(words...); len(got) != 0 {
		t.Errorf("it said %q", got)
	}
	if _, err := s.CallTool(t.Context(), sessions.ToolRequest{ClientID: l.clientID(), Name: "list_terminals"}); !errors.Is(err, sessions.ErrNoTool) {
		t.Errorf("a call: %v", err)
	}

	l.tools(true, 2)
	l.answer(s, "list_terminals", `{}`)
	l.tools(false, 0)
	testkit.Eventually(t, patience, "the tools are withdrawn", func() bool {
		return slices.ContainsFunc(h.saidOf("unsubscribe"), func(msg string) bool { return strings.Contains(msg, ahp.RootURI) })
	})
	before := len(h.saidOf(words...))
	third := h.session()
	if got := l.status("off", func(s localapi.Status) bool { return !s.Hosts[0].Tools.On }); got.Hosts[0].Tools.Calls != 1 {
		t.Errorf("status %+v", got.Hosts[0].Tools)
	}
	for _, s := range []*sessions.Caller{s, third} {
		if _, err := s.CallTool(t.Context(), sessions.ToolRequest{ClientID: l.clientID(), Name: "list_terminals"}); !errors.Is(err, sessions.ErrNoTool) {
			t.Errorf("a call after that: %v", err)
		}
	}
	if got := h.saidOf(words...); len(got) != before {
		t.Errorf("switched off, it said %q", got[before:])
	}
}

// Who manages a machine can keep tools from being offered anywhere.
func TestToolsAreOffByConfiguration(t *testing.T) {
	h := newToolHost(t)
	h.session()
	l := newLaptop(t, h, nil)
	l.tools(true, 1)
	l.end()
	l.config.Settings.Uplink.ClientTools = false
	l.daemon = start(t, l.config)
	l.status("the link", func(s localapi.Status) bool { return s.Hosts[0].State == "online" && !s.Hosts[0].Tools.On })
	on := true
	_, err := l.client.ChangeHost(t.Context(), "lab", localapi.HostChange{Tools: &on})
	var refused *localapi.Error
	if !errors.As(err, &refused) || refused.Code != localapi.CodeDenied || !strings.Contains(refused.Hint, "uplink.client_tools") {
		t.Errorf("switched on: %v", err)
	}
	off := false
	if _, err := l.client.ChangeHost(t.Context(), "lab", localapi.HostChange{Tools: &off}); err != nil {
		t.Errorf("switched off: %v", err)
	}
	if got := h.saidOf("session/activeClientSet"); len(got) != 1 {
		t.Errorf("tools were offered %d times, want only before", len(got))
	}
}

// The person's choice outlives the daemon; a running call ends with it, as failed; a new
// pairing starts afresh.
func TestToolsOutliveTheDaemon(t *testing.T) {
	h := newToolHost(t)
	l := newLaptop(t, h, nil)
	s := h.session()
	l.tools(true, 1)
	waiting := l.call(s, "spawn_background_terminal", spawnText())
	testkit.Eventually(t, patience, "a question", func() bool {
		all, err := l.client.Approvals(t.Context(), nil)
		return err == nil && len(all.Approvals) == 1
	})
	l.end()
	if got := <-waiting; got.err != nil || got.result.Success {
		t.Errorf("the call that was under way: %v, %+v", got.err, got.result)
	}
	if _, err := os.Stat(filepath.Join(l.dirs.State, "calls", l.clientID()+".json")); err != nil {
		t.Errorf("that it has begun is not noted: %v", err)
	}
	withdrawn := func(times int) {
		t.Helper()
		testkit.Eventually(t, patience, fmt.Sprint("the tools were withdrawn, ", times), func() bool { return len(h.saidOf("session/activeClientRemoved")) == times })
	}
	withdrawn(1)
	l.daemon = start(t, l.config)
	l.offered(true, 1)
	l.answer(s, "list_terminals", `{}`)
	must.Get(l.client.Pair(t.Context(), localapi.PairRequest{URL: h.url}))(t)
	l.offered(true, 1) // pairing again keeps the choice
	before := len(h.saidOf("session/activeClientRemoved"))
	must.Get(l.client.Unpair(t.Context(), "lab"))(t)
	withdrawn(before + 1)
	if left, err := os.ReadDir(filepath.Join(l.dirs.State, "calls")); err != nil || len(left) != 0 {
		t.Errorf("after unpairing, %d files of calls are left, %v", len(left), err)
	}
}
