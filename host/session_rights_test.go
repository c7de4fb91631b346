package host_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tether/ahp"
	"tether/host"
	"tether/host/sessions"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

func listSessions(t *testing.T, v *viewer) []ahp.SessionSummary {
	t.Helper()
	var r ahp.ListSessionsResult
	must.Do(t, v.call(ahp.MethodListSessions, ahp.ListSessionsParams{Channel: ahp.RootURI}, &r))
	return r.Items
}

// rejected dispatches and returns why it was refused, "" if it was not.
func (v *viewer) rejected(uri string, a ahp.Action) string {
	v.t.Helper()
	e := v.answer(v.dispatch(uri, a))
	if !e.Rejected() {
		return ""
	}
	return *e.RejectionReason
}

func TestRightsOfEachRoleOnSessions(t *testing.T) {
	h, url := serve(t, host.Options{Sessions: true, Access: newUsers("machine-laptop", "machine-other", "observer-ann", "agent-bot", "operator-op", "admin-root")})
	shared, err := h.NewSession("agents\x1b[31m")
	must.Do(t, err)
	own := as(t, url, "machine-laptop", "laptop", viewOptions{})
	own.join(sessionURI, "run")
	own.join(shared.URI(), "run")
	ownChat := own.session(sessionURI).DefaultChat
	sharedChat := own.session(shared.URI()).DefaultChat
	type may struct{ Lists, SeesOwn, SeesChat, SeesShared, SeesTheOther, SeesSharedChat, Creates, Publishes, Renames, Disposes bool }
	for token, want := range map[string]may{
		"observer-ann":  {},
		"agent-bot":     {},
		"machine-other": {SeesShared: true, Creates: true, Publishes: true},
		"operator-op":   {Lists: true, SeesOwn: true, SeesChat: true, SeesShared: true, SeesTheOther: true, SeesSharedChat: true, Creates: true, Renames: true},
		"admin-root":    {Lists: true, SeesOwn: true, SeesChat: true, SeesShared: true, SeesTheOther: true, SeesSharedChat: true, Creates: true, Renames: true, Publishes: true, Disposes: true},
	} {
		v := as(t, url, token, token, viewOptions{})
		got := may{Lists: len(listSessions(t, v)) == 2}
		got.SeesOwn = v.subscribe(sessionURI) == nil
		got.SeesChat = v.subscribe(ownChat) == nil
		got.SeesShared = v.subscribe(shared.URI()) == nil
		got.SeesTheOther = got.SeesShared && len(v.session(shared.URI()).ActiveClients) > 0
		got.SeesSharedChat = v.subscribe(sharedChat) == nil
		got.Publishes = v.rejected(shared.URI(), activeClient(token, "x")) == ""
		got.Renames = v.rejected(sessionURI, ahp.SessionTitleChanged{Title: "new"}) == ""
		got.Disposes = v.call(ahp.MethodDisposeSession, ahp.DisposeSessionParams{Channel: shared.URI()}, nil) == nil
		got.Creates = v.call(ahp.MethodCreateSession, ahp.CreateSessionParams{Channel: "ahp-session:/" + token}, nil) == nil
		check.Equal(t, token, want, got)
		if got.Creates {
			if err := v.call(ahp.MethodDisposeSession, ahp.DisposeSessionParams{Channel: "ahp-session:/" + token}, nil); err != nil {
				t.Errorf("%s disposes of its own: %v", token, err)
			}
		}
		v.close()
		if got.Disposes { // the next one starts from the same state
			if shared, err = h.NewSession("agents"); err != nil {
				t.Fatal(err)
			}
			own.join(shared.URI(), "run")
			sharedChat = own.session(shared.URI()).DefaultChat
		}
	}
}

// No other machine is sent messages between the host and one machine, neither live nor in
// a replay nor in a snapshot.
func TestMachinesDoNotSeeEachOthersCalls(t *testing.T) {
	h, url := serve(t, host.Options{Sessions: true, Access: newUsers("machine-a", "machine-b", "operator-o")})
	s := must.Get(h.NewSession(""))(t)
	a, b := as(t, url, "machine-a", "a", viewOptions{}), as(t, url, "machine-b", "b", viewOptions{})
	a.join(s.URI(), "secret_tool")
	b.join(s.URI(), "run")
	o := as(t, url, "operator-o", "o", viewOptions{subs: []string{s.URI()}})
	_, seen := b.received()
	go func() { _, _ = s.CallTool(t.Context(), sessions.ToolRequest{ClientID: "a", Name: "secret_tool"}) }()
	call := a.work(s.URI())
	o.await("the call", func() bool { return len(o.talks[s.URI()].session.InputNeeded) == 1 })
	// b can neither answer it, nor tell whether it is there.
	const none = "no such channel"
	if why := b.rejected(call.Chat, done(call)); why != none {
		t.Errorf("another machine answers: %q", why)
	}
	if why := b.rejected("ahp-chat:/none", done(call)); why != "no such terminal" && why != none {
		t.Errorf("a chat that is not there: %q", why)
	}
	if why := b.rejected(s.URI(), ahp.SessionActiveClientRemoved{ClientID: "a"}); !strings.Contains(why, "only its own tools") {
		t.Errorf("another machine removes it: %q", why)
	}
	if why := b.rejected(s.URI(), activeClient("a", "forged")); !strings.Contains(why, "only its own tools") {
		t.Errorf("another machine publishes for it: %q", why)
	}
	if why := b.rejected(s.URI(), ahp.SessionInputNeededSet{Request: ahp.InputRequest{ID: "x", Kind: "chatInput", Chat: call.Chat}}); !strings.Contains(why, "may not dispatch") {
		t.Errorf("a machine asks: %q", why)
	}
	a.dispatch(call.Chat, done(call))
	a.await("the request is gone", func() bool { return len(a.talks[s.URI()].session.InputNeeded) == 0 })
	b.ping()
	b.close()
	again := as(t, url, "machine-b", "b", viewOptions{noInit: true})
	var r json.RawMessage
	must.Do(t, again.call(ahp.MethodReconnect, ahp.ReconnectParams{Channel: ahp.RootURI, ClientID: "b", LastSeenServerSeq: seen, Subscriptions: []string{s.URI(), call.Chat}}, &r))
	if !strings.Contains(string(r), `"missing":["`+call.Chat) {
		t.Errorf("reconnect: %s", r)
	}
	fresh := as(t, url, "machine-b", "b2", viewOptions{subs: []string{s.URI()}})
	text, _ := json.Marshal(fresh.session(s.URI()))
	said := string(r) + string(text)
	sent, _ := b.received()
	for _, e := range sent {
		said += string(e.Action)
	}
	if strings.Contains(said, "secret_tool") {
		t.Errorf("the other machine was sent %s", said)
	}
}

func TestWrongSessionRequests(t *testing.T) {
	_, url := serve(t, host.Options{Sessions: true, MaxSessions: 20, Access: newUsers("machine-a", "machine-b", "operator-o", "admin-r")})
	a := as(t, url, "machine-a", "a", viewOptions{})
	b := as(t, url, "machine-b", "b", viewOptions{})
	a.create("ahp-terminal:/t")
	a.join(sessionURI, "run")
	chat := a.session(sessionURI).DefaultChat
	for name, tt := range map[string]struct {
		v              *viewer
		method, params string
		code           int64
	}{
		"no URI":            {a, ahp.MethodCreateSession, `{}`, int64(jsonrpc.CodeInvalidParams)},
		"a URI twice":       {b, ahp.MethodCreateSession, `{"channel":"` + sessionURI + `"}`, ahp.CodeSessionAlreadyExists},
		"a chat's URI":      {b, ahp.MethodCreateSession, `{"channel":"` + chat + `"}`, ahp.CodeSessionAlreadyExists},
		"a terminal's URI":  {b, ahp.MethodCreateSession, `{"channel":"ahp-terminal:/t"}`, ahp.CodeSessionAlreadyExists},
		"the root":          {b, ahp.MethodCreateSession, `{"channel":"ahp-root://"}`, ahp.CodeSessionAlreadyExists},
		"provider":          {a, ahp.MethodCreateSession, `{"channel":"x:y","provider":"copilot"}`, ahp.CodeProviderNotFound},
		"somebody's tools":  {a, ahp.MethodCreateSession, `{"channel":"x:y","activeClient":{"clientId":"b","tools":[]}}`, int64(jsonrpc.CodeInvalidParams)},
		"tools":             {a, ahp.MethodCreateSession, `{"channel":"x:y","activeClient":{"clientId":"a","tools":[{"name":""}]}}`, int64(jsonrpc.CodeInvalidParams)},
		"a terminal there":  {b, ahp.MethodCreateTerminal, `{"channel":"` + sessionURI + `","executionTarget":"client","claim":{"kind":"client","clientId":"b"}}`, ahp.CodeAlreadyExists},
		"no UTF-8":          {a, ahp.MethodCreateSession, `{"channel":"x:y","activeClient":{"clientId":"a","tools":[{"name":"x","inputSchema":{"y":"` + "\xff" + `"}}]}}`, int64(jsonrpc.CodeInvalidParams)},
		"large":             {a, ahp.MethodCreateSession, `{"channel":"x:y","workingDirectories":["` + strings.Repeat("a", 70<<10) + `"]}`, int64(jsonrpc.CodeInvalidParams)},
		"dispose, unknown":  {a, ahp.MethodDisposeSession, `{"channel":"x:y"}`, ahp.CodeSessionNotFound},
		"dispose, chat":     {a, ahp.MethodDisposeSession, `{"channel":"` + chat + `"}`, ahp.CodeSessionNotFound},
		"dispose, unseen":   {b, ahp.MethodDisposeSession, `{"channel":"` + sessionURI + `"}`, ahp.CodeSessionNotFound},
		"limit":             {a, ahp.MethodListSessions, `{"limit":-1}`, int64(jsonrpc.CodeInvalidParams)},
		"cursor":            {a, ahp.MethodListSessions, `{"cursor":"x"}`, int64(jsonrpc.CodeInvalidParams)},
		"a negative cursor": {a, ahp.MethodListSessions, `{"cursor":"-1"}`, int64(jsonrpc.CodeInvalidParams)},
	} {
		if err := tt.v.call(tt.method, jsonRaw(tt.params), nil); code(err) != tt.code {
			t.Errorf("%s: %v, want %d", name, err, tt.code)
		}
	}
	made := 1
	var err error
	for ; made < 100; made++ {
		if err = a.call(ahp.MethodCreateSession, ahp.CreateSessionParams{Channel: fmt.Sprint("ahp-session:/more", made)}, nil); err != nil {
			break
		}
	}
	if made != 16 || code(err) != int64(jsonrpc.CodeOverloaded) {
		t.Errorf("a client has %d sessions, then %v", made, err)
	}
	for ; made < 100; made++ {
		if err = b.call(ahp.MethodCreateSession, ahp.CreateSessionParams{Channel: fmt.Sprint("ahp-session:/more", made)}, nil); err != nil {
			break
		}
	}
	if made != 20 || code(err) != int64(jsonrpc.CodeOverloaded) {
		t.Errorf("the host has %d sessions, then %v", made, err)
	}
	// Page by page, everything once, the newest first.
	operator := as(t, url, "operator-o", "o", viewOptions{})
	seen := map[string]bool{}
	for p, pages := (ahp.ListSessionsParams{Limit: 7}), 1; ; pages++ {
		var r ahp.ListSessionsResult
		must.Do(t, operator.call(ahp.MethodListSessions, p, &r))
		for _, s := range r.Items {
			seen[s.Resource] = true
		}
		if p.Cursor = r.NextCursor; p.Cursor == "" {
			if pages != 3 {
				t.Errorf("%d pages", pages)
			}
			break
		}
	}
	if len(seen) != 20 {
		t.Errorf("listed %d sessions, want 20", len(seen))
	}
}

// Any dispatch of a machine in its session is applied, or refused for a reason, and never
// disturbs another's call.
func TestHostileMachineInASession(t *testing.T) {
	h, url := serve(t, host.Options{Sessions: true, Access: newUsers("machine-a", "machine-b", "operator-o")})
	a := as(t, url, "machine-a", "a", viewOptions{})
	as(t, url, "machine-b", "b", viewOptions{}).create("ahp-terminal:/b")
	a.join(sessionURI, "run")
	go func() {
		_, _ = opened(t, h, sessionURI).CallTool(t.Context(), sessions.ToolRequest{ClientID: "a", Name: "run"})
	}()
	call := a.work(sessionURI)
	id := fmt.Sprintf(`"turnId":%q,"toolCallId":"call-1"`, call.TurnID)
	large := strings.Repeat("x", 70<<10)
	for name, tt := range map[string]struct{ uri, action, want string }{
		"no type":               {call.Chat, `{}`, ""},
		"not an object":         {call.Chat, `7`, ""},
		"another call":          {call.Chat, `{"type":"chat/toolCallComplete","turnId":"t","toolCallId":"call-1","result":{"success":true}}`, "no such tool call"},
		"another turn":          {call.Chat, `{"type":"chat/turnCancelled","turnId":"t","duration":0}`, "no such turn"},
		"without an id":         {call.Chat, `{"type":"chat/toolCallContentChanged","content":[]}`, "missing"},
		"approved":              {call.Chat, `{"type":"chat/toolCallConfirmed",` + id + `,"approved":true,"confirmed":"setting"}`, "already confirmed"},
		"another's terminal":    {call.Chat, `{"type":"chat/toolCallContentChanged",` + id + `,"content":[{"type":"terminal","resource":"ahp-terminal:/b","title":"t"}]}`, "not this client's"},
		"the host's words":      {call.Chat, `{"type":"chat/toolCallStart",` + id + `,"toolName":"x","displayName":"x"}`, "may not dispatch"},
		"a turn":                {call.Chat, `{"type":"chat/turnStarted","turnId":"x","message":{"text":"hi","origin":{"kind":"user"}}}`, "may not dispatch"},
		"unknown":               {call.Chat, `{"type":"chat/future"}`, "may not dispatch"},
		"the session's on chat": {call.Chat, `{"type":"session/titleChanged","title":"t"}`, "may not dispatch"},
		"the chat's on session": {sessionURI, `{"type":"chat/toolCallComplete",` + id + `,"result":{"success":true}}`, "may not dispatch"},
		"a terminal's":          {sessionURI, `{"type":"terminal/input","data":"x"}`, "may not dispatch"},
		"large tools":           {sessionURI, `{"type":"session/activeClientSet","activeClient":{"clientId":"a","tools":[{"name":"x","description":"` + large[:16<<10] + `"},{"name":"y","inputSchema":{"x":"` + large[:60<<10] + `"}}]}}`, "at most 65536 are allowed"},
		"a tool's name":         {sessionURI, `{"type":"session/activeClientSet","activeClient":{"clientId":"a","tools":[{"name":"a b"}]}}`, "may hold only letters"},
		"no tools":              {sessionURI, `{"type":"session/activeClientSet"}`, "activeClient is missing"},
		"no UTF-8":              {call.Chat, `{"type":"chat/toolCallContentChanged",` + id + `,"content":[{"type":"x","y":"` + "\xff" + `"}]}`, "it is not UTF-8"},
		"a title":               {sessionURI, `{"type":"session/titleChanged","title":"` + large[:5000] + `"}`, "title"},
	} {
		t.Run(name, func(t *testing.T) {
			seq := a.dispatchRaw(tt.uri, []byte(tt.action))
			if tt.want == "" {
				a.ping()
				return
			}
			if e := a.answer(seq); !e.Rejected() || !strings.Contains(*e.RejectionReason, tt.want) {
				t.Errorf("%s\n got %+v\nwant %q", tt.action, e, tt.want)
			}
		})
	}
	if left := a.session(sessionURI).InputNeeded; len(left) != 1 {
		t.Errorf("the call is still under way, but the session needs %+v", left)
	}
	a.dispatch(sessionURI, ahp.SessionTitleChanged{Title: "a\x1b]0;b\u202e"})
	a.await("the title", func() bool { return a.talks[sessionURI].session.Title == "a]0;b" })
}
