package toolcall_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"tether/agent/toolcall"
	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

const (
	us   = "laptop"
	chat = "ahp-chat:/c1"
)

// fakeHost has sessions and a chat, and takes requests down when they are answered.
type fakeHost struct {
	odd  map[string]*jsonrpc.Error // by method, or method and channel: answered with this
	mute bool                      // nothing that is dispatched arrives

	mu       sync.Mutex
	seq      int64
	sessions map[string]ahp.SessionState
	archived map[string]bool
	peer     *jsonrpc.Peer   // the newest connection
	follows  map[string]bool // its subscriptions
	received []string        // methods and actions, with their channel
	answers  map[string][]ahp.ChatToolCallComplete
	before   func(channel string) // called before a subscription is answered
}

func newHost(sessions ...string) *fakeHost {
	h := &fakeHost{sessions: map[string]ahp.SessionState{}, archived: map[string]bool{}, answers: map[string][]ahp.ChatToolCallComplete{}}
	for _, uri := range sessions {
		h.sessions[uri] = ahp.SessionState{Title: uri}
	}
	return h
}

func (h *fakeHost) serve(ctx context.Context, ch jsonrpc.Channel) {
	p := jsonrpc.NewPeer(ch, jsonrpc.Options{Handler: h})
	h.mu.Lock()
	h.peer, h.follows = p, map[string]bool{}
	h.mu.Unlock()
	p.Run(ctx)
}

func (h *fakeHost) Handle(_ context.Context, r *jsonrpc.Request) {
	var p struct {
		Channel string          `json:"channel"`
		Action  json.RawMessage `json:"action"`
	}
	json.Unmarshal(r.Params, &p)
	h.mu.Lock()
	defer h.mu.Unlock()
	note := strings.TrimSpace(r.Method + " " + p.Channel)
	if r.Method != ahp.MethodDispatchAction {
		h.received = append(h.received, note)
	}
	for _, of := range []string{r.Method, note} {
		if e := h.odd[of]; e != nil {
			r.ReplyError(e)
			return
		}
	}
	switch r.Method {
	case ahp.MethodInitialize:
		r.Reply(ahp.InitializeResult{ProtocolVersion: "1.0.0"})
	case ahp.MethodListSessions:
		r.Reply(h.list())
	case ahp.MethodSubscribe:
		h.subscribe(r, p.Channel)
	case ahp.MethodUnsubscribe:
		delete(h.follows, p.Channel)
	case ahp.MethodDispatchAction:
		h.dispatched(p.Channel, p.Action)
	default:
		r.Reply(nil)
	}
}

func (h *fakeHost) list() ahp.ListSessionsResult {
	var all ahp.ListSessionsResult
	for uri := range h.sessions {
		status := ahp.SessionIdle
		if h.archived[uri] {
			status |= ahp.SessionIsArchived
		}
		all.Items = append(all.Items, ahp.SessionSummary{Resource: uri, Status: status})
	}
	slices.SortFunc(all.Items, func(a, b ahp.SessionSummary) int { return strings.Compare(a.Resource, b.Resource) })
	return all
}

func (h *fakeHost) subscribe(r *jsonrpc.Request, channel string) {
	s, ok := h.sessions[channel]
	if !ok && channel != ahp.RootURI {
		r.ReplyError(jsonrpc.Errorf(ahp.CodeNotFound, "no such channel"))
		return
	}
	h.follows[channel] = true
	state, _ := json.Marshal(s)
	from := h.seq
	if h.before != nil {
		h.before(channel)
	}
	r.Reply(ahp.SubscribeResult{Snapshot: &ahp.Snapshot{Resource: channel, State: state, FromSeq: from}})
}

func (h *fakeHost) dispatched(channel string, raw json.RawMessage) {
	a, err := ahp.DecodeAction(raw)
	if err != nil || ahp.ValidateAction(a) != nil {
		h.received = append(h.received, fmt.Sprintf("bad action: %v, %v", err, ahp.ValidateAction(a)))
		return
	}
	h.received = append(h.received, a.Type()+" "+channel)
	if h.mute {
		return
	}
	switch a := a.(type) {
	case ahp.SessionActiveClientSet, ahp.SessionActiveClientRemoved:
		h.reduceLocked(channel, a)
	case ahp.ChatToolCallComplete:
		h.answers[a.ToolCallID] = append(h.answers[a.ToolCallID], a)
		for uri, s := range h.sessions {
			for _, r := range s.InputNeeded {
				if r.ToolCall != nil && r.ToolCall.ToolCallID == a.ToolCallID {
					h.reduceLocked(uri, ahp.SessionInputNeededRemoved{ID: r.ID})
				}
			}
		}
	}
}

// reduceLocked changes a session and tells who follows it.
func (h *fakeHost) reduceLocked(session string, a ahp.Action) {
	h.sessions[session] = ahp.ReduceSession(h.sessions[session], a)
	h.sayLocked(session, a)
}

func (h *fakeHost) sayLocked(channel string, a ahp.Action) {
	h.seq++
	if h.peer != nil && h.follows[channel] {
		h.peer.Notify(context.Background(), ahp.MethodAction, ahp.Envelope{Channel: channel, ServerSeq: h.seq, Action: ahp.AppendAction(nil, a)})
	}
}

// do changes a session, as the host would, and waits for the reaction.
func (h *fakeHost) do(session string, a ahp.Action) {
	h.mu.Lock()
	h.reduceLocked(session, a)
	h.mu.Unlock()
	synctest.Wait()
}

// ask asks for a call and waits for the immediate reaction.
func (h *fakeHost) ask(session, id, tool, args string) {
	h.do(session, ahp.SessionInputNeededSet{Request: request(id, tool, args)})
}

// request is a well-formed one for us.
func request(id, tool, args string) ahp.InputRequest {
	return ahp.InputRequest{ID: "request of " + id, Kind: ahp.InputToolClientExecution, Chat: chat, TurnID: "t1", ClientID: us, ToolCall: &ahp.ToolCall{
		Status: ahp.ToolRunning, ToolCallID: id, ToolName: tool, ToolInput: ahp.NewToolInput(json.RawMessage(args)),
		Contributor: &ahp.Contributor{Kind: ahp.ContributorClient, ClientID: us},
	}}
}

// notify sends a notification.
func (h *fakeHost) notify(method string, params any) {
	h.mu.Lock()
	p := h.peer
	h.mu.Unlock()
	p.Notify(context.Background(), method, params)
	synctest.Wait()
}

// took returns the actions that have arrived since the last time.
func (h *fakeHost) took() []string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.received
	h.received = nil
	return all
}

// answer is the only answer to a call.
func (h *fakeHost) answer(t *testing.T, id string) ahp.ToolResult {
	t.Helper()
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.answers[id]); n != 1 {
		t.Fatalf("call %s was answered %d times, want once", id, n)
	}
	return h.answers[id][0].Result
}

func (h *fakeHost) answered(id string) int {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.answers[id])
}

// world is a desk and its host in one bubble.
type world struct {
	t    *testing.T
	host *fakeHost
	opts toolcall.Options
	desk *toolcall.Desk
	end  func() // of the connection

	mu      sync.Mutex
	runs    []toolcall.Call
	records []toolcall.Record
	most    int // calls at a time
	now     int
	block   chan struct{} // calls of "block" wait for it
}

// newWorld starts a desk that is on and connected.
func newWorld(t *testing.T, h *fakeHost) *world {
	w := &world{t: t, host: h, block: make(chan struct{}), end: func() {}}
	w.opts = toolcall.Options{ClientID: us, Machine: "my laptop", Run: w.run, Ended: w.ended,
		Tools: []ahp.ToolDefinition{{Name: "echo", Title: "Echo", InputSchema: json.RawMessage(`{"type":"object"}`)}, {Name: "block"}, {Name: "fail"}, {Name: "huge"}}}
	w.restart()
	t.Cleanup(func() {
		w.end()
		w.desk.Close()
	})
	return w
}

// restart replaces the desk, as another daemon would.
func (w *world) restart() {
	w.end()
	if w.desk != nil {
		w.desk.Close()
	}
	w.desk = toolcall.New(w.opts)
	w.desk.On()
	w.connect()
}

// connect opens a connection, in place of the one that is there.
func (w *world) connect() {
	w.t.Helper()
	w.end()
	ctx, cancel := context.WithCancel(w.t.Context())
	near, far := testkit.Channels()
	var done sync.WaitGroup
	done.Go(func() { w.host.serve(ctx, far) })
	desk := w.desk
	conn := must.Get(client.ConnectChannel(ctx, near, client.Options{ClientID: us, OnEnvelope: desk.Envelope, OnNotification: desk.Notification}))(w.t)
	done.Go(func() { desk.Serve(ctx, conn) })
	w.end = sync.OnceFunc(func() {
		cancel()
		conn.Peer().Close()
		done.Wait()
	})
	synctest.Wait()
}

func (w *world) run(ctx context.Context, c toolcall.Call) toolcall.Answer {
	w.mu.Lock()
	w.runs = append(w.runs, c)
	w.now++
	w.most = max(w.most, w.now)
	w.mu.Unlock()
	defer func() { w.mu.Lock(); w.now--; w.mu.Unlock() }()
	switch c.Tool {
	case "block":
		select {
		case <-w.block:
		case <-ctx.Done():
			return toolcall.Answer{Failed: true, Text: ctx.Err().Error()}
		}
	case "fail":
		return toolcall.Answer{Failed: true, Text: "it is not allowed"}
	case "huge":
		return toolcall.Answer{Text: strings.Repeat("x", 1<<20)}
	}
	return toolcall.Answer{Text: string(c.Arguments), Terminal: &ahp.TerminalBlock{Type: ahp.ContentTerminal, Resource: "ahp-terminal:/1", Title: "dev"}}
}

func (w *world) ended(r toolcall.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r.Took = 0
	w.records = append(w.records, r)
}

// ran is how many calls were carried out.
func (w *world) ran() int {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.runs)
}

// inBubble runs a test with a world of one session.
func inBubble(t *testing.T, f func(w *world, h *fakeHost)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		h := newHost(one)
		f(newWorld(t, h), h)
	})
}

const one, two = "ahp-session:/1", "ahp-session:/2"
