package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/ahp"
	"tether/host"
	"tether/host/sessions"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

const (
	sessionURI = "ahp-session:/s1"
	shellURI   = "ahp-terminal:/shell"
)

// talk is a session or a chat in a viewer's state: from its snapshot and later actions.
type talk struct {
	session ahp.SessionState
	chat    ahp.ChatState
	isChat  bool
	steps   []string // kinds of actions
}

func isTalk(uri string) bool {
	return strings.HasPrefix(uri, ahp.SessionScheme) || strings.HasPrefix(uri, ahp.ChatScheme)
}

func loadTalk(t testing.TB, s ahp.Snapshot) *talk {
	x := &talk{isChat: strings.HasPrefix(s.Resource, ahp.ChatScheme)}
	err := json.Unmarshal(s.State, &x.session)
	if x.isChat {
		err = json.Unmarshal(s.State, &x.chat)
	}
	if err != nil {
		t.Errorf("snapshot of %s: %v\n%s", s.Resource, err, s.State)
	}
	return x
}

func (x *talk) reduce(a ahp.Action) {
	x.steps = append(x.steps, a.Type())
	if x.isChat {
		at, _ := time.Parse(time.RFC3339Nano, x.chat.ModifiedAt)
		x.chat = ahp.ReduceChat(x.chat, a, at)
		return
	}
	x.session = ahp.ReduceSession(x.session, a)
}

func notice(t testing.TB, r *jsonrpc.Request) string {
	var p struct {
		Session string
		Summary ahp.SessionSummary
	}
	if err := json.Unmarshal(r.Params, &p); err != nil {
		t.Errorf("%s %s: %v", r.Method, r.Params, err)
	}
	return r.Method + " " + p.Session + p.Summary.Resource
}

// session is a viewer's state of a session, chat that of a chat.
func (v *viewer) session(uri string) ahp.SessionState {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.talks[uri].session
}

func (v *viewer) chat(uri string) ahp.ChatState {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.talks[uri].chat
}

// rests reports whether the chat has had so many turns, and the session says that it
// rests. The viewer's lock is held.
func (v *viewer) rests(session, chat string, turns int) bool {
	return len(v.talks[chat].chat.Turns) == turns && v.talks[session].session.Chats[0].Status == ahp.SessionIdle
}

// join creates the session if it is not there, subscribes to it and publishes tools in
// it.
func (v *viewer) join(uri string, tools ...string) {
	v.t.Helper()
	if err := v.call(ahp.MethodCreateSession, ahp.CreateSessionParams{Channel: uri}, nil); err != nil && code(err) != ahp.CodeSessionAlreadyExists {
		v.t.Fatalf("createSession: %v", err)
	}
	if err := v.subscribe(uri); err != nil {
		v.t.Fatalf("subscribe to the session: %v", err)
	}
	if e := v.answer(v.dispatch(uri, activeClient(v.id, tools...))); e.Rejected() {
		v.t.Fatalf("tools are refused: %s", *e.RejectionReason)
	}
}

func activeClient(id string, tools ...string) ahp.Action {
	a := ahp.SessionActiveClientSet{ActiveClient: ahp.ActiveClient{ClientID: id}}
	for _, name := range tools {
		a.ActiveClient.Tools = append(a.ActiveClient.Tools, ahp.ToolDefinition{Name: name, Title: strings.ToUpper(name), Description: "does " + name,
			InputSchema: []byte(`{"type":"object"}`), Annotations: []byte(`{"readOnlyHint":true}`)})
	}
	return a
}

// work waits for a call of a tool of the viewer's that it has not taken yet, as its
// session shows it.
func (v *viewer) work(uri string) ahp.InputRequest {
	v.t.Helper()
	var found ahp.InputRequest
	v.await("a call of a tool", func() bool {
		for _, r := range v.talks[uri].session.InputNeeded {
			if r.Kind == ahp.InputToolClientExecution && r.ClientID == v.id {
				found = r
				return true
			}
		}
		return false
	})
	return found
}

func ref(r ahp.InputRequest) ahp.ToolCallRef {
	return ahp.ToolCallRef{TurnID: r.TurnID, ToolCallID: r.ToolCall.ToolCallID}
}

func done(r ahp.InputRequest, contents ...ahp.ToolContent) ahp.Action {
	return ahp.ChatToolCallComplete{ToolCallRef: ref(r), Result: ahp.ToolResult{Success: true, PastTenseMessage: ahp.Text{Value: "did it"}, Content: contents}}
}

// opened returns a host's session of that URI.
func opened(t *testing.T, h *host.Host, uri string) *sessions.Caller {
	t.Helper()
	return must.Get(h.Session(uri))(t)
}

// flow is one flow of the protocol's guide to terminals: a host with a session, and a
// person who watches and may do something.
type flow struct {
	t       *testing.T
	h       *host.Host
	session *sessions.Caller
	runner  *fakeRunner
	person  *viewer
	chatURI string
}

func newFlow(t *testing.T) *flow {
	f := &flow{t: t, runner: &fakeRunner{procs: map[string]*fakeProcess{}}}
	h, url := serve(t, host.Options{Runner: f.runner, Sessions: true})
	f.h, f.person = h, dial(t, url, "person", viewOptions{subs: []string{ahp.RootURI}})
	f.person.join(sessionURI)
	f.session = opened(t, h, sessionURI)
	f.chatURI = f.person.session(sessionURI).DefaultChat
	must.Do(t, f.person.subscribe(f.chatURI))
	return f
}

// begin begins a call that uses a terminal and returns both, with the person subscribed.
func (f *flow) begin() (*sessions.Call, string) {
	f.t.Helper()
	call := must.Get(f.session.Begin(sessions.CallInfo{Name: "run", Message: "run make", Agent: "bot"}))(f.t)
	uri := must.Get(call.Open(f.t.Context(), "make", ""))(f.t)
	must.Do(f.t, f.person.subscribe(uri))
	return call, uri
}

func (f *flow) end(call *sessions.Call) {
	f.t.Helper()
	must.Do(f.t, call.End(ahp.ToolResult{Success: true, PastTenseMessage: ahp.Text{Value: "ran"}}))
}

// awaitClaim waits for the holder of a terminal: in its channel and in the list of
// terminals, which must agree.
func (f *flow) awaitClaim(uri string, want ahp.Claim) {
	f.t.Helper()
	f.person.await(fmt.Sprintf("the claim %+v", want), func() bool {
		i := slices.IndexFunc(f.person.root.Terminals, func(t ahp.TerminalInfo) bool { return t.Resource == uri })
		return i >= 0 && f.person.root.Terminals[i].Claim == want && f.person.states[uri].Claim == want
	})
}

// says dispatches for the person and checks the answer: "" or a part of why it is
// refused.
func (f *flow) says(uri string, a ahp.Action, want string) {
	f.t.Helper()
	e := f.person.answer(f.person.dispatch(uri, a))
	switch {
	case want == "" && e.Rejected():
		f.t.Errorf("%s is refused: %s", ahp.AppendAction(nil, a), *e.RejectionReason)
	case want != "" && (!e.Rejected() || !strings.Contains(*e.RejectionReason, want)):
		f.t.Errorf("%s: %+v, want it refused with %q", ahp.AppendAction(nil, a), e, want)
	}
}

func (f *flow) background() ahp.Claim {
	return ahp.Claim{Kind: ahp.ClaimSession, Session: sessionURI, Chat: f.chatURI}
}

// TestFlows are those of AHP's guide to terminals, over real connections.
func TestFlows(t *testing.T) {
	for name, run := range map[string]func(f *flow){
		"an agent runs a command":        agentRunsACommand,
		"an agent starts a server":       agentStartsAServer,
		"a client detaches":              clientDetaches,
		"a client interacts":             clientInteracts,
		"the session reclaims":           sessionReclaims,
		"a terminal is cleaned up":       terminalsAreCleanedUp,
		"a client gives what it created": clientGives,
	} {
		t.Run(name, func(t *testing.T) { run(newFlow(t)) })
	}
}

func agentRunsACommand(f *flow) {
	call, uri := f.begin()
	p := f.person
	p.await("the call with its terminal", func() bool {
		turn := p.talks[f.chatURI].chat.ActiveTurn
		return turn != nil && turn.ToolCall("call-1") != nil && len(turn.ToolCall("call-1").Content) == 1
	})
	running := p.chat(f.chatURI).ActiveTurn
	claim := f.background()
	claim.TurnID, claim.ToolCallID = running.ID, "call-1"
	f.awaitClaim(uri, claim)
	if c := running.ToolCall("call-1"); c.Content[0].Terminal.Resource != uri || c.Status != ahp.ToolRunning {
		f.t.Errorf("shown in the call: %+v", c)
	}
	check.OK(f.t, call.Input(uri, "make\r\n"))
	p.awaitText(uri, "make\r\n")
	check.OK(f.t, call.Input(uri, "exit"))
	if err := call.Wait(f.t.Context(), uri); err != nil {
		f.t.Errorf("wait for the exit: %v", err)
	}
	f.end(call)
	p.await("the end of the turn", func() bool { return len(p.talks[f.chatURI].chat.Turns) == 1 })
	c := p.chat(f.chatURI).Turns[0].ToolCall("call-1")
	if c.Status != ahp.ToolCompleted || len(c.Content) != 1 {
		f.t.Fatalf("the call has ended as %+v", c)
	}
	if r := c.Content[0].Terminal.Result; r == nil || *r.ExitCode != 0 || *r.Preview != "make\r\nexit" || *r.Truncated {
		f.t.Errorf("its result: %+v", r)
	}
	f.awaitClaim(uri, f.background())
	p.await("the chat at rest in the session", func() bool {
		return p.talks[sessionURI].session.Chats[0].Status == ahp.SessionIdle
	})
	want := []string{"chat/turnStarted", "chat/toolCallStart", "chat/toolCallReady", "chat/toolCallContentChanged", "chat/toolCallComplete", "chat/turnComplete"}
	p.mu.Lock()
	defer p.mu.Unlock()
	check.Equal(f.t, "in the chat", want, p.talks[f.chatURI].steps)
}

func agentStartsAServer(f *flow) {
	call, uri := f.begin()
	f.end(call)
	f.awaitClaim(uri, f.background())
	if f.person.state(uri).Lifecycle.Exited() {
		f.t.Error("the server has ended with its call")
	}
	if err := call.Input(uri, "x"); err != sessions.ErrDetached {
		f.t.Errorf("a call that has ended types: %v", err)
	}
}

func clientDetaches(f *flow) {
	call, uri := f.begin()
	f.says(uri, ahp.TerminalInput{Data: "q"}, "in use by a tool call")
	f.says(uri, ahp.TerminalClaimed{Claim: ahp.ClientClaim("person")}, "in use by a tool call: detach it first")
	foreign := f.background()
	foreign.Chat = "ahp-chat:/another"
	f.says(uri, ahp.TerminalClaimed{Claim: foreign}, "no such chat")
	f.says(uri, ahp.TerminalClaimed{Claim: ahp.Claim{Kind: ahp.ClaimSession, Session: sessionURI}}, "") // as before 0.9
	if err := call.Wait(f.t.Context(), uri); err != sessions.ErrDetached {
		f.t.Errorf("the agent is told %v", err)
	}
	f.awaitClaim(uri, f.background())
	f.end(call)
	f.person.await("the end of the turn", func() bool { return len(f.person.talks[f.chatURI].chat.Turns) == 1 })
	if c := f.person.chat(f.chatURI).Turns[0].ToolCall("call-1"); len(c.Content) != 0 {
		f.t.Errorf("the result shows what the call had no more: %+v", c.Content)
	}
}

func clientInteracts(f *flow) {
	call, uri := f.begin()
	f.end(call)
	f.awaitClaim(uri, f.background())
	f.says(uri, ahp.TerminalInput{Data: "q"}, "held by a session: claim it first")
	f.says(uri, ahp.TerminalClaimed{Claim: ahp.ClientClaim("another")}, "only for itself")
	f.says(uri, ahp.TerminalClaimed{Claim: ahp.ClientClaim("person")}, "")
	f.says(uri, ahp.TerminalInput{Data: "ls\r\n"}, "")
	f.person.awaitText(uri, "ls\r\n")
	f.awaitClaim(uri, ahp.ClientClaim("person"))
	again := must.Get(f.session.Begin(sessions.CallInfo{Name: "run"}))(f.t)
	if err := again.Claim(uri); err != sessions.ErrDetached {
		f.t.Errorf("an agent takes what a person holds: %v", err)
	}
}

func sessionReclaims(f *flow) {
	call, uri := f.begin()
	f.end(call)
	again := must.Get(f.session.Begin(sessions.CallInfo{Name: "check", Title: "Check\x1b[31m"}))(f.t)
	if err := again.Claim(uri); err != nil {
		f.t.Fatalf("reclaim: %v", err)
	}
	p := f.person
	p.await("the call", func() bool {
		turn := p.talks[f.chatURI].chat.ActiveTurn
		return turn != nil && turn.ToolCall("call-2") != nil
	})
	turn := p.chat(f.chatURI).ActiveTurn
	claim := f.background()
	claim.TurnID, claim.ToolCallID = turn.ID, "call-2"
	f.awaitClaim(uri, claim)
	if name := turn.ToolCall("call-2").DisplayName; name != "Check[31m" {
		f.t.Errorf("shown as %q", name)
	}
	check.OK(f.t, again.Input(uri, "status\r\n"))
	p.awaitText(uri, "status\r\n")
}

func terminalsAreCleanedUp(f *flow) {
	call, used := f.begin()
	_, kept := f.begin()
	f.person.await("both", func() bool { return len(f.person.root.Terminals) == 2 })
	f.says(kept, ahp.TerminalClaimed{Claim: f.background()}, "")
	f.says(kept, ahp.TerminalClaimed{Claim: ahp.ClientClaim("person")}, "")
	waited := make(chan error, 1)
	go func() { waited <- call.Wait(f.t.Context(), used) }()
	must.Do(f.t, f.person.call(ahp.MethodDisposeSession, ahp.DisposeSessionParams{Channel: sessionURI}, nil))
	if err := <-waited; err != sessions.ErrDetached {
		f.t.Errorf("who waits in a session that is disposed of: %v", err)
	}
	<-f.runner.procs[used].killed
	f.person.await("what the person holds alone", func() bool {
		return len(f.person.root.Terminals) == 1 && f.person.root.Terminals[0].Resource == kept
	})
	f.person.await("the removal", func() bool { return slices.Contains(f.person.notices, "root/sessionRemoved "+sessionURI) })
	if _, err := f.h.Session(sessionURI); err != sessions.ErrNoSession {
		f.t.Errorf("the session is there: %v", err)
	}
	for _, uri := range []string{sessionURI, f.chatURI, used} {
		if err := f.person.subscribe(uri); !ahp.IsGone(code(err)) {
			f.t.Errorf("subscribe to %s: %v", uri, err)
		}
	}
	select {
	case <-f.runner.procs[kept].killed:
		f.t.Error("what the person held was killed")
	default:
	}
}

func clientGives(f *flow) {
	for name, tt := range map[string]struct {
		claim ahp.Claim
		want  string
	}{
		"no session":  {ahp.Claim{Kind: ahp.ClaimSession, Session: "ahp-session:/none"}, "no such session"},
		"a chat":      {ahp.Claim{Kind: ahp.ClaimSession, Session: f.chatURI}, "no such session"},
		"a tool call": {ahp.Claim{Kind: ahp.ClaimSession, Session: sessionURI, TurnID: "t", ToolCallID: "c"}, "only the host says"},
	} {
		err := f.person.call(ahp.MethodCreateTerminal, ahp.CreateTerminalParams{Channel: shellURI, Claim: tt.claim}, nil)
		if code(err) != int64(jsonrpc.CodeInvalidParams) || !strings.Contains(err.Error(), tt.want) {
			f.t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	must.Do(f.t, f.person.call(ahp.MethodCreateTerminal, serverTerminal(shellURI, "person"), nil))
	must.Do(f.t, f.person.subscribe(shellURI))
	f.says(shellURI, ahp.TerminalClaimed{Claim: f.background()}, "")
	f.awaitClaim(shellURI, f.background())
	again := must.Get(f.session.Begin(sessions.CallInfo{Name: "check"}))(f.t)
	if err := again.Claim(shellURI); err != nil {
		f.t.Errorf("an agent takes what it was given: %v", err)
	}
}

// A client's tool is called through its session, and its terminal is shown in the result.
func TestClientTool(t *testing.T) {
	h, url := serve(t, host.Options{Sessions: true, Access: newUsers("machine-laptop", "operator-ann")})
	laptop := as(t, url, "machine-laptop", "laptop", viewOptions{resume: true})
	laptop.join(sessionURI, "run")
	watcher := as(t, url, "operator-ann", "ann", viewOptions{subs: []string{sessionURI}})
	chat := watcher.session(sessionURI).DefaultChat
	must.Do(t, watcher.subscribe(chat))
	result := make(chan ahp.ToolResult, 1)
	var failure sync.WaitGroup
	failure.Go(func() {
		r, err := opened(t, h, sessionURI).CallTool(t.Context(), sessions.ToolRequest{ClientID: "laptop", Name: "run", Arguments: []byte(`{"argv":["make"]}`), Agent: "bot"})
		check.OK(t, err)
		result <- r
	})
	call := laptop.work(sessionURI)
	args, err := call.ToolCall.Arguments()
	if err != nil || string(args) != `{"argv":["make"]}` || call.Chat != chat || call.ToolCall.ToolName != "run" || !call.ToolCall.CalledAt("laptop") {
		t.Errorf("the call: %+v with %s, %v", call, args, err)
	}
	laptop.create("ahp-terminal:/make")
	block := ahp.TerminalContent("ahp-terminal:/make", "make", true)
	laptop.dispatch(chat, ahp.ChatToolCallContentChanged{ToolCallRef: ref(call), Content: []ahp.ToolContent{block}})
	watcher.await("the terminal in the call", func() bool {
		turn := watcher.talks[chat].chat.ActiveTurn
		return turn != nil && turn.ToolCall("call-1") != nil && len(turn.ToolCall("call-1").Content) == 1
	})
	laptop.dispatch(chat, done(call, block, ahp.TextContent("ok")))
	want := ahp.ToolResult{Success: true, PastTenseMessage: ahp.Text{Value: "did it"}, Content: []ahp.ToolContent{block, ahp.TextContent("ok")}}
	check.Equal(t, "the result", want, <-result)
	failure.Wait()
	watcher.await("the end", func() bool {
		return watcher.rests(sessionURI, chat, 1) && len(watcher.talks[sessionURI].session.InputNeeded) == 0
	})
	// Who looks only now sees the same.
	late := as(t, url, "operator-ann", "late", viewOptions{subs: []string{sessionURI, chat}})
	if diff := cmp.Diff(watcher.session(sessionURI), late.session(sessionURI)); diff != "" {
		t.Errorf("the session (-followed +fresh)\n%s", diff)
	}
	ignoreTime := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".ModifiedAt" }, cmp.Ignore())
	if diff := cmp.Diff(watcher.chat(chat), late.chat(chat), ignoreTime); diff != "" {
		t.Errorf("the chat (-followed +fresh)\n%s", diff)
	}
}

// Calls that do not end as they should. Time is fake.
func TestCallsThatFail(t *testing.T) {
	type scene struct {
		t      *testing.T
		h      *host.Host
		laptop *viewer
		call   ahp.InputRequest
		cancel func()
	}
	for name, tt := range map[string]struct {
		do   func(s scene)
		want string // of the result's error, or of the call's
	}{
		"refused": {func(s scene) {
			s.laptop.dispatch(s.call.Chat, ahp.ChatToolCallConfirmed{ToolCallRef: ref(s.call), Reason: ahp.ReasonDenied, ReasonMessage: ahp.PlainText("not today")})
		}, "the machine refused the call: not today"},
		"failed": {func(s scene) {
			a := done(s.call).(ahp.ChatToolCallComplete)
			a.Result.Success, a.Result.Error = false, &ahp.ToolError{Message: "no such file"}
			s.laptop.dispatch(s.call.Chat, a)
		}, "no such file"},
		"too large": {func(s scene) {
			s.laptop.dispatch(s.call.Chat, done(s.call, ahp.TextContent(strings.Repeat("x", 300<<10))))
		}, "at most 262144 are allowed"},
		"gone":       {func(s scene) { s.laptop.close() }, "the machine is offline"},
		"begun anew": {func(s scene) { connect(s.t, s.h, "laptop", viewOptions{}) }, "the machine is offline"},
		"unsubscribed": {func(s scene) {
			_ = s.laptop.peer.Notify(s.t.Context(), ahp.MethodUnsubscribe, ahp.UnsubscribeParams{Channel: sessionURI})
		}, "the machine is offline"},
		"taken back":        {func(s scene) { s.laptop.dispatch(sessionURI, ahp.SessionActiveClientRemoved{ClientID: "laptop"}) }, "the machine is offline"},
		"cancelled":         {func(s scene) { s.laptop.dispatch(s.call.Chat, ahp.ChatTurnCancelled{TurnID: s.call.TurnID}) }, "the turn was cancelled"},
		"nobody waits":      {func(s scene) { s.cancel() }, "context canceled"},
		"session disposed":  {func(s scene) { session, _ := s.h.Session(sessionURI); session.Dispose(); session.Dispose() }, "disposed of"},
		"the host is ended": {func(s scene) { s.h.Close() }, "closed"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := testHost(t, host.Options{Sessions: true})
				laptop := connect(t, h, "laptop", viewOptions{})
				laptop.join(sessionURI, "run")
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan string, 1)
				go func() {
					r, err := opened(t, h, sessionURI).CallTool(ctx, sessions.ToolRequest{ClientID: "laptop", Name: "run"})
					switch {
					case err != nil:
						ended <- err.Error()
					case r.Error != nil && !r.Success:
						ended <- r.Error.Message
					default:
						ended <- "no error"
					}
				}()
				tt.do(scene{t, h, laptop, laptop.work(sessionURI), cancel})
				if got := <-ended; !strings.Contains(got, tt.want) {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			})
		})
	}
}
