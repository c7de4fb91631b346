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
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// execute answers every call of the viewer's tools as it comes, until the test ends.
func (v *viewer) execute(uri string, answer func(n int, r ahp.InputRequest) ahp.Action) {
	over := make(chan struct{})
	go func() { defer close(over); v.answerCalls(uri, answer) }()
	v.t.Cleanup(func() { v.close(); <-over })
}

// answerCalls is execute until the connection ends.
func (v *viewer) answerCalls(uri string, answer func(n int, r ahp.InputRequest) ahp.Action) {
	seen := map[string]bool{}
	for n := 0; ; n++ {
		var next *ahp.InputRequest
		v.mu.Lock()
		for next == nil && v.peer.Err() == nil {
			for i, r := range v.talks[uri].session.InputNeeded {
				if !seen[r.ID] {
					next = &v.talks[uri].session.InputNeeded[i]
				}
			}
			if next == nil {
				v.cond.Wait()
			}
		}
		v.mu.Unlock()
		if next == nil {
			return
		}
		seen[next.ID] = true
		v.dispatch(next.Chat, answer(n, *next))
	}
}

// A client that returns by reconnect has the same session and chat as a new one.
func TestSessionsAreReplayed(t *testing.T) {
	h, url := serve(t, host.Options{Sessions: true})
	laptop := dial(t, url, "laptop", viewOptions{})
	laptop.join(sessionURI, "run")
	chat := laptop.session(sessionURI).DefaultChat
	v := dial(t, url, "v", viewOptions{subs: []string{sessionURI, chat}})
	s := opened(t, h, sessionURI)
	answered := make(chan ahp.ToolResult, 1)
	go func() {
		r, err := s.CallTool(t.Context(), sessions.ToolRequest{ClientID: "laptop", Name: "run"})
		check.OK(t, err)
		answered <- r
	}()
	v.await("the call", func() bool { return len(v.talks[sessionURI].session.InputNeeded) == 1 })
	call := laptop.work(sessionURI)
	v.close()
	laptop.close()
	// The machine comes back, too, and its call goes on.
	again := dial(t, url, "laptop", viewOptions{noInit: true})
	rejoin(t, again, laptop, sessionURI)
	again.dispatch(chat, done(call, ahp.TextContent("late")))
	if r := <-answered; !r.Success || r.Content[0].Text != "late" {
		t.Errorf("the result: %+v", r)
	}
	w := dial(t, url, "v", viewOptions{noInit: true})
	rejoin(t, w, v, sessionURI, chat)
	w.await("the end of the turn", func() bool { return w.rests(sessionURI, chat, 1) })
	fresh := dial(t, url, "fresh", viewOptions{subs: []string{sessionURI, chat}})
	if diff := cmp.Diff(fresh.session(sessionURI), w.session(sessionURI)); diff != "" {
		t.Errorf("the session (-fresh +replayed)\n%s", diff)
	}
	if diff := cmp.Diff(fresh.chat(chat).Turns, w.chat(chat).Turns); diff != "" {
		t.Errorf("the chat (-fresh +replayed)\n%s", diff)
	}
}

// rejoin reconnects v as before was connected, continuing from the state of before.
func rejoin(t *testing.T, v, before *viewer, uris ...string) {
	t.Helper()
	var r ahp.ReconnectResult
	must.Do(t, v.call(ahp.MethodReconnect, ahp.ReconnectParams{Channel: ahp.RootURI, ClientID: v.id, LastSeenServerSeq: before.lastSeq, Subscriptions: uris}, &r))
	for _, s := range r.Snapshots {
		v.load(s)
	}
	if r.Type != ahp.ReconnectReplay {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, uri := range uris {
		v.talks[uri] = before.talks[uri]
	}
	early := v.envelopes
	v.envelopes = append(r.Actions, early...)
	for _, e := range v.envelopes {
		if e.ServerSeq > before.lastSeq {
			v.reduce(e)
		}
	}
	for _, uri := range uris {
		v.from[uri] = before.lastSeq
	}
}

func TestBoundsOfCalls(t *testing.T) {
	h := steadyHost(t, host.Options{Sessions: true})
	laptop := connect(t, h, "laptop", viewOptions{})
	laptop.join(sessionURI, "run")
	s := opened(t, h, sessionURI)
	for name, tt := range map[string]struct {
		r    sessions.ToolRequest
		want string
	}{
		"nobody":          {sessions.ToolRequest{ClientID: "desk", Name: "run"}, "no such tool"},
		"no tool":         {sessions.ToolRequest{ClientID: "laptop", Name: "walk"}, "no such tool"},
		"a list":          {sessions.ToolRequest{ClientID: "laptop", Name: "run", Arguments: []byte(`[]`)}, "not a JSON object"},
		"null":            {sessions.ToolRequest{ClientID: "laptop", Name: "run", Arguments: []byte(`null`)}, "not a JSON object"},
		"nonsense":        {sessions.ToolRequest{ClientID: "laptop", Name: "run", Arguments: []byte(`{"a":`)}, "not a JSON object"},
		"large arguments": {sessions.ToolRequest{ClientID: "laptop", Name: "run", Arguments: []byte(`{"a":"` + strings.Repeat("a", 64<<10) + `"}`)}, "at most 65536 are allowed"},
	} {
		if _, err := s.CallTool(t.Context(), tt.r); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	if turns := opened(t, h, sessionURI); turns != s {
		t.Error("a session is another one when it is asked for again")
	}
	ctx, cancel := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	for range 16 {
		calls.Go(func() {
			if _, err := s.CallTool(ctx, sessions.ToolRequest{ClientID: "laptop", Name: "run"}); err != context.Canceled {
				t.Error(err)
			}
		})
	}
	laptop.await("all calls", func() bool { return len(laptop.talks[sessionURI].session.InputNeeded) == 16 })
	if _, err := s.CallTool(t.Context(), sessions.ToolRequest{ClientID: "laptop", Name: "run"}); err == nil || !strings.Contains(err.Error(), "too many tool calls") {
		t.Errorf("one more: %v", err)
	}
	cancel()
	calls.Wait()
	laptop.await("none", func() bool { return laptop.talks[sessionURI].session.InputNeeded == nil })
	if _, err := s.Begin(sessions.CallInfo{Name: "x", Input: []byte(`7`)}); err == nil {
		t.Error("an input that is no object is taken")
	}
	call := must.Get(s.Begin(sessions.CallInfo{Name: "x"}))(t)
	if _, err := call.Open(t.Context(), "", ""); err == nil || !strings.Contains(err.Error(), "no terminals of its own") {
		t.Errorf("a terminal without a runner: %v", err)
	}
	s.Dispose()
	if err := call.End(ahp.ToolResult{}); err != sessions.ErrDetached {
		t.Errorf("a call ends twice: %v", err)
	}
	for _, err := range []error{second(s.CallTool(t.Context(), sessions.ToolRequest{ClientID: "laptop", Name: "run"})), second(s.Begin(sessions.CallInfo{}))} {
		if err != sessions.ErrNoSession {
			t.Errorf("in a session that is over: %v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// A host's record of a chat is bounded in turns and in bytes, whatever a machine answers.
func TestOldTurnsGiveWay(t *testing.T) {
	for name, tt := range map[string]struct{ calls, bytes, fewest, most int }{
		"many":  {80, 10, 64, 64},
		"large": {12, 200 << 10, 4, 6},
	} {
		t.Run(name, func(t *testing.T) {
			h := steadyHost(t, host.Options{Sessions: true})
			laptop := connect(t, h, "laptop", viewOptions{})
			laptop.join(sessionURI, "run")
			s := opened(t, h, sessionURI)
			laptop.execute(sessionURI, func(n int, r ahp.InputRequest) ahp.Action {
				return done(r, ahp.TextContent(fmt.Sprint(n)+strings.Repeat(".", tt.bytes)))
			})
			for i := range tt.calls {
				if r, err := s.CallTool(t.Context(), sessions.ToolRequest{ClientID: "laptop", Name: "run"}); err != nil || !r.Success {
					t.Fatalf("call %d: %+v, %v", i, r.Error, err)
				}
			}
			v := connect(t, h, "v", viewOptions{subs: []string{laptop.session(sessionURI).DefaultChat}})
			chat := v.chat(laptop.session(sessionURI).DefaultChat)
			if n := len(chat.Turns); n < tt.fewest || n > tt.most {
				t.Errorf("%d turns are kept, want %d to %d", n, tt.fewest, tt.most)
			}
			last := chat.Turns[len(chat.Turns)-1].ResponseParts[0].ToolCall
			if last.Content[0].Text[:2] != fmt.Sprint(tt.calls - 1)[:2] {
				t.Errorf("the last is not the newest: %.20s", last.Content[0].Text)
			}
		})
	}
}

// All chats together do not make an answer longer than the host sends: each shows its
// newest turns.
func TestManyChatsInOneAnswer(t *testing.T) {
	h := steadyHost(t, host.Options{Sessions: true})
	laptop := connect(t, h, "laptop", viewOptions{})
	var chats []string
	for i := range 12 {
		s := must.Get(h.NewSession(fmt.Sprint(i)))(t)
		laptop.join(s.URI(), "run")
		chats = append(chats, laptop.session(s.URI()).DefaultChat)
		laptop.execute(s.URI(), func(n int, r ahp.InputRequest) ahp.Action {
			return done(r, ahp.TextContent(fmt.Sprint(n)+strings.Repeat(".", 200<<10)))
		})
		for range 5 {
			must.Get(s.CallTool(t.Context(), sessions.ToolRequest{ClientID: "laptop", Name: "run"}))(t)
		}
	}
	all := connect(t, h, "all", viewOptions{subs: chats})
	one := connect(t, h, "one", viewOptions{subs: chats[:1]})
	for _, uri := range chats {
		turns := all.chat(uri).Turns
		if len(turns) != 3 || turns[2].ToolCall("call-5") == nil {
			t.Errorf("%d turns, want the newest three", len(turns))
		}
	}
	if turns := one.chat(chats[0]).Turns; len(turns) != 5 {
		t.Errorf("alone it shows %d turns, want all five", len(turns))
	}
}

// A slow reader of a session never sees an inconsistent state, and costs the others
// nothing. Time is fake.
func TestSlowInASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := testHost(t, host.Options{Sessions: true, LogCount: 8, StallTime: time.Hour, SilenceTime: time.Hour})
		laptop := connect(t, h, "laptop", viewOptions{})
		laptop.join(sessionURI, "run")
		chat := laptop.session(sessionURI).DefaultChat
		near, far := testkit.Channels()
		served := make(chan error, 1)
		go func() { served <- h.ServeChannel(t.Context(), far) }()
		slow := newViewer(t, near, "slow")
		slow.initialize(viewOptions{subs: []string{chat}})
		laptop.execute(sessionURI, func(_ int, r ahp.InputRequest) ahp.Action { return done(r) })
		slow.mu.Lock() // it reads no further than one message
		s := opened(t, h, sessionURI)
		for range 20 {
			if _, err := s.CallTool(t.Context(), sessions.ToolRequest{ClientID: "laptop", Name: "run"}); err != nil {
				t.Error(err)
			}
		}
		slow.mu.Unlock()
		<-served
		<-slow.done
		after := 0
		for i, e := range slow.envelopes {
			if i > 0 && e.Channel == chat && e.ServerSeq > slow.envelopes[i-1].ServerSeq+8 {
				after++
			}
		}
		if after > 0 {
			t.Errorf("after a gap it was sent %d envelopes more", after)
		}
		connect(t, h, "slow", viewOptions{subs: []string{chat}}) // and is welcome
	})
}

// A session outlives its creator's connection by the grace time, and longer if another
// client is in it. Time is fake.
func TestWhenSessionsEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(t *testing.T, h *host.Host, creator *viewer)
		lives  bool
	}{
		"nobody is in it": {func(*testing.T, *host.Host, *viewer) {}, false},
		"a machine is in it": {func(t *testing.T, h *host.Host, _ *viewer) {
			connect(t, h, "laptop", viewOptions{}).join(sessionURI, "run")
		}, true},
		"somebody watches": {func(t *testing.T, h *host.Host, _ *viewer) {
			connect(t, h, "watcher", viewOptions{subs: []string{sessionURI}})
		}, true},
		"it holds a terminal": {func(t *testing.T, h *host.Host, creator *viewer) {
			claim := ahp.Claim{Kind: ahp.ClaimSession, Session: sessionURI}
			must.Do(t, creator.call(ahp.MethodCreateTerminal, ahp.CreateTerminalParams{Channel: shellURI, Claim: claim}, nil))
		}, true},
		"its creator is back": {func(t *testing.T, h *host.Host, creator *viewer) {
			creator.close()
			connect(t, h, creator.id, viewOptions{subs: []string{sessionURI}})
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := testHost(t, host.Options{Sessions: true, Runner: &fakeRunner{procs: map[string]*fakeProcess{}}})
				creator := connect(t, h, "creator", viewOptions{})
				must.Do(t, creator.call(ahp.MethodCreateSession, ahp.CreateSessionParams{Channel: sessionURI}, nil))
				tt.before(t, h, creator)
				creator.close()
				time.Sleep(29 * time.Second)
				opened(t, h, sessionURI)
				time.Sleep(2 * time.Second)
				if _, err := h.Session(sessionURI); (err == nil) != tt.lives {
					t.Errorf("after the grace time: %v, want it to live: %v", err, tt.lives)
				}
			})
		})
	}
}

// An agent's session at the MCP door is its own and ends with its token.
func TestAgentsHaveSessionsOfTheirOwn(t *testing.T) {
	users := newUsers("operator-a", "operator-b", "admin-r")
	_, url := serve(t, host.Options{Sessions: true, Access: users})
	for range 2 {
		for _, token := range []string{"operator-a", "operator-b"} {
			must.Get(overHTTP(t, url, token, nil))(t)
		}
	}
	admin := as(t, url, "admin-r", "r", viewOptions{})
	var titles []string
	for _, s := range listSessions(t, admin) {
		titles = append(titles, s.Title)
	}
	slices.Sort(titles)
	check.Equal(t, "sessions", []string{"agent a", "agent b"}, titles)
	users.ends["operator-a"](fmt.Errorf("revoked"))
	admin.await("the end of one", func() bool {
		return slices.ContainsFunc(admin.notices, func(n string) bool { return strings.HasPrefix(n, ahp.MethodSessionRemoved) })
	})
	if left := listSessions(t, admin); len(left) != 1 || left[0].Title != "agent b" {
		t.Errorf("left: %+v", left)
	}
}

// Of two who claim at the same time, one gets it.
func TestOneOfTwoClaims(t *testing.T) {
	f := newFlow(t)
	call, uri := f.begin()
	f.end(call)
	viewers := []*viewer{f.person, connect(t, f.h, "other", viewOptions{subs: []string{uri}})}
	var got sync.Map
	var all sync.WaitGroup
	for _, v := range viewers {
		all.Go(func() {
			if v.rejected(uri, ahp.TerminalClaimed{Claim: ahp.ClientClaim(v.id)}) == "" {
				got.Store(v.id, true)
			}
		})
	}
	all.Wait()
	count, holder := 0, ""
	for id := range got.Range {
		count++
		holder = id.(string)
	}
	if count != 1 {
		t.Fatalf("%d of two have it", count)
	}
	f.awaitClaim(uri, ahp.ClientClaim(holder))
}

// FuzzSessionDispatch: with any dispatches of a machine on its session, on the chat or
// for a call, the session stays readable, and the next call works.
func FuzzSessionDispatch(f *testing.F) {
	f.Add(true, []byte(`{"type":"chat/toolCallComplete","turnId":"T","toolCallId":"call-1","result":{"success":true,"pastTenseMessage":"x","content":[{"type":"terminal","resource":"a:b","title":"t"}]}}`))
	f.Add(true, []byte(`{"type":"chat/toolCallContentChanged","turnId":"T","toolCallId":"call-1","content":[{"type":"text","text":"x"}],"_meta":{"a":1}}`))
	f.Add(true, []byte(`{"type":"chat/toolCallConfirmed","turnId":"T","toolCallId":"call-1","approved":false,"reason":"denied"}`))
	f.Add(true, []byte(`{"type":"chat/turnCancelled","turnId":"T","duration":1}`))
	f.Add(false, []byte(`{"type":"session/activeClientSet","activeClient":{"clientId":"laptop","tools":[{"name":"run","inputSchema":{"type":"object"}}]}}`))
	f.Add(false, []byte(`{"type":"session/activeClientRemoved","clientId":"laptop"}`))
	f.Add(false, []byte(`{"type":"session/titleChanged","title":"t"}`))
	f.Fuzz(func(t *testing.T, onChat bool, action []byte) {
		if !json.Valid(action) {
			return
		}
		h := steadyHost(t, host.Options{Sessions: true})
		laptop := connect(t, h, "laptop", viewOptions{})
		laptop.join(sessionURI, "run")
		uri := laptop.session(sessionURI).DefaultChat
		s := opened(t, h, sessionURI)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = s.CallTool(ctx, sessions.ToolRequest{ClientID: "laptop", Name: "run"})
		}()
		turn := laptop.work(sessionURI).TurnID
		if !onChat {
			uri = sessionURI
		}
		laptop.dispatchRaw(uri, []byte(strings.ReplaceAll(string(action), `"T"`, `"`+turn+`"`)))
		laptop.ping()
		cancel()
		<-ended
		v := connect(t, h, "v", viewOptions{subs: []string{sessionURI, laptop.session(sessionURI).DefaultChat}})
		if turn := v.chat(laptop.session(sessionURI).DefaultChat).ActiveTurn; turn != nil {
			t.Errorf("a turn without calls is under way: %+v", turn)
		}
		laptop.join(sessionURI, "again")
		laptop.execute(sessionURI, func(_ int, r ahp.InputRequest) ahp.Action { return done(r) })
		if r, err := s.CallTool(t.Context(), sessions.ToolRequest{ClientID: "laptop", Name: "again"}); err != nil || !r.Success {
			t.Errorf("the next call: %+v, %v", r, err)
		}
	})
}
