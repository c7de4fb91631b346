package toolcall_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/agent/toolcall"
	"tether/ahp"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
	"tether/platform/secret"
)

// While a desk is off, it sends a host nothing about sessions, whatever the host sends.
func TestNothingIsSentWhileOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(one)
		w := newWorld(t, h)
		w.end()
		w.desk.Close()
		w.desk = toolcall.New(w.opts)
		h.took()
		w.connect()
		h.notify(ahp.MethodSessionAdded, ahp.SessionAddedParams{Channel: ahp.RootURI, Summary: ahp.SessionSummary{Resource: two}})
		h.mu.Lock()
		h.follows[one] = true // it sends unrequested messages
		h.mu.Unlock()
		h.ask(one, "a", "echo", `{}`)
		time.Sleep(24 * time.Hour)
		check.Equal(t, "it heard", []string{"initialize " + ahp.RootURI}, h.took())
		if w.ran() != 0 || w.desk.Status() != (toolcall.Status{}) {
			t.Errorf("%d calls ran, %+v", w.ran(), w.desk.Status())
		}
	})
}

func TestToolsAreOffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(one, "ahp-session:/old")
		h.archived["ahp-session:/old"] = true
		w := newWorld(t, h)
		want := []string{"initialize ahp-root://", "subscribe ahp-root://", "listSessions ahp-root://", "subscribe " + one, "session/activeClientSet " + one}
		check.Equal(t, "the host was asked", want, h.took())
		offered := h.sessions[one].ActiveClients
		if len(offered) != 1 || offered[0].ClientID != us || offered[0].DisplayName != "my laptop" || len(offered[0].Tools) != 4 ||
			offered[0].Tools[0].Title != "Echo" || string(offered[0].Tools[0].InputSchema) != `{"type":"object"}` {
			t.Errorf("offered: %+v", offered)
		}
		h.mu.Lock()
		h.sessions[two] = ahp.SessionState{}
		h.mu.Unlock()
		h.notify(ahp.MethodSessionAdded, ahp.SessionAddedParams{Channel: ahp.RootURI, Summary: ahp.SessionSummary{Resource: two}})
		check.Equal(t, "of a new session", []string{"subscribe " + two, "session/activeClientSet " + two}, h.took())
		if s := w.desk.Status(); !s.On || s.Sessions != 2 || s.Problem != "" {
			t.Errorf("status %+v", s)
		}
		h.notify(ahp.MethodSessionRemoved, ahp.SessionRemovedParams{Channel: ahp.RootURI, Session: two})
		if s := w.desk.Status(); s.Sessions != 1 {
			t.Errorf("status %+v after one has ended", s)
		}
		w.end()
		check.Equal(t, "to be followed on", []string{one}, w.desk.Subscriptions())
		w.connect()
		if got := h.took(); !slices.Contains(got, "session/activeClientSet "+one) {
			t.Errorf("after a lost connection: %v", got)
		}
		w.desk.Off(t.Context())
		if got := w.desk.Subscriptions(); len(got) != 0 {
			t.Errorf("switched off, it wants to follow %v", got)
		}
	})
}

func TestOptionalFeaturesOfAHost(t *testing.T) {
	for _, c := range []struct {
		name, of string
		err      *jsonrpc.Error
		want     toolcall.Status
	}{
		{"sessions", ahp.MethodListSessions, jsonrpc.MethodNotFound("listSessions"), toolcall.Status{On: true, Problem: "the host has no sessions"}},
		{"the root channel", "subscribe ahp-root://", jsonrpc.Errorf(ahp.CodePermissionDenied, "no"), toolcall.Status{On: true, Problem: "follow the root channel: no (code -32009)"}},
		{"a session", "subscribe " + one, jsonrpc.Errorf(ahp.CodePermissionDenied, "no"), toolcall.Status{On: true}},
		{"a session that is gone", "subscribe " + one, jsonrpc.Errorf(ahp.CodeSessionNotFound, "gone"), toolcall.Status{On: true}},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHost(one)
			h.odd = map[string]*jsonrpc.Error{c.of: c.err}
			w := newWorld(t, h)
			got := w.desk.Status()
			if !strings.HasPrefix(got.Problem, strings.SplitN(c.want.Problem, ": no", 2)[0]) || got.Sessions != 0 || c.want.Problem == "" && got.Problem != "" {
				t.Errorf("without %s: %+v, want %+v", c.name, got, c.want)
			}
			h.took()
			h.mu.Lock()
			h.odd = nil
			h.mu.Unlock()
			time.Sleep(time.Hour)
			gone := c.err.Code == ahp.CodeSessionNotFound
			if got := w.desk.Status(); (got.Sessions == 1) == gone {
				t.Errorf("an hour after it has %s: %+v", c.name, got)
			}
		})
	}
}

func TestACallIsAnswered(t *testing.T) {
	inBubble(t, func(w *world, h *fakeHost) {
		h.ask(one, "a", "echo", `{"x":1}`)
		want := ahp.ToolResult{Success: true, PastTenseMessage: ahp.Text{Value: "Echo: done"}, Content: []ahp.ToolContent{
			ahp.TextContent(`{"x":1}`),
			{Type: ahp.ContentTerminal, Terminal: &ahp.TerminalBlock{Type: ahp.ContentTerminal, Resource: "ahp-terminal:/1", Title: "dev"}},
		}}
		check.Equal(w.t, "the answer", want, h.answer(w.t, "a"))
		if c := w.runs[0]; c.Session != toolcall.Tag(one) || c.Tool != "echo" || string(c.Arguments) != `{"x":1}` {
			w.t.Errorf("carried out: %+v", c)
		}
		h.ask(one, "b", "fail", `{}`)
		if got := h.answer(w.t, "b"); got.Success || got.Error == nil || got.Error.Message != "it is not allowed" || got.Content[0].Text != "it is not allowed" {
			w.t.Errorf("of one that fails: %+v", got)
		}
		h.ask(one, "c", "huge", `{}`)
		if got := h.answer(w.t, "c"); got.Success || !strings.Contains(got.Error.Message, "1048578 bytes") || !strings.Contains(got.Error.Message, "maxBytes") {
			w.t.Errorf("of one with too long an answer: %+v", got)
		}
		tag := toolcall.Tag(one)
		records := []toolcall.Record{{Session: tag, Tool: "echo"}, {Session: tag, Tool: "fail", Failed: true}, {Session: tag, Tool: "huge", Failed: true}}
		check.Equal(w.t, "the records", records, w.records)
	})
}

// Requests that are not calls of ours get no answer and have no effect.
func TestRequestsThatAreNoCalls(t *testing.T) {
	change := func(f func(*ahp.InputRequest)) ahp.InputRequest {
		r := request("a", "echo", `{}`)
		f(&r)
		return r
	}
	for name, r := range map[string]ahp.InputRequest{
		"another client's":         change(func(r *ahp.InputRequest) { r.ClientID = "desktop" }),
		"nobody's":                 change(func(r *ahp.InputRequest) { r.ClientID = "" }),
		"another client's tool":    change(func(r *ahp.InputRequest) { r.ToolCall.Contributor.ClientID = "desktop" }),
		"the host's tool":          change(func(r *ahp.InputRequest) { r.ToolCall.Contributor = &ahp.Contributor{Kind: "mcp"} }),
		"a confirmation":           change(func(r *ahp.InputRequest) { r.Kind = "toolConfirmation" }),
		"another kind":             {ID: "x", Kind: "chatInput", Chat: chat},
		"no call":                  change(func(r *ahp.InputRequest) { r.ToolCall = nil }),
		"a call that has ended":    change(func(r *ahp.InputRequest) { r.ToolCall.Status = ahp.ToolCompleted }),
		"one that waits for a yes": change(func(r *ahp.InputRequest) { r.ToolCall.Status = "pending-confirmation" }),
		"no id":                    change(func(r *ahp.InputRequest) { r.ID = "" }),
		"no turn":                  change(func(r *ahp.InputRequest) { r.TurnID = "" }),
		"no call id":               change(func(r *ahp.InputRequest) { r.ToolCall.ToolCallID = "" }),
		"a huge id":                change(func(r *ahp.InputRequest) { r.ToolCall.ToolCallID = strings.Repeat("x", 10000) }),
		"no chat":                  change(func(r *ahp.InputRequest) { r.Chat = "" }),
		"a chat that is none":      change(func(r *ahp.InputRequest) { r.Chat = "c 1" }),
	} {
		inBubble(t, func(w *world, h *fakeHost) {
			h.took()
			h.do(one, ahp.SessionInputNeededSet{Request: r})
			if got := h.took(); len(got) != 0 || w.ran() != 0 {
				w.t.Errorf("%s: the host heard %v, %d ran", name, got, w.ran())
			}
			w.connect() // now it is in the snapshot
			if w.ran() != 0 || len(h.answers) != 0 || w.desk.Status().Ignored != 2 {
				w.t.Errorf("%s in a snapshot: %d ran, answers %v, %+v", name, w.ran(), h.answers, w.desk.Status())
			}
		})
	}
}

// Invalid calls are answered with their fault, and not carried out.
func TestBadCalls(t *testing.T) {
	for _, c := range []struct{ name, tool, input, want string }{
		{"an unknown tool", "rm_rf", `"{}"`, `no such tool: "rm_rf"`},
		{"no JSON", "echo", `"x"`, "toolInput does not hold a JSON object"},
		{"more than one value", "echo", `"{} {}"`, "toolInput does not hold a JSON object"},
		{"a list", "echo", `"[]"`, "toolInput does not hold a JSON object"},
		{"null in a string", "echo", `"null"`, "toolInput does not hold a JSON object"},
		{"a reference", "echo", `{"uri":"file:///etc/passwd"}`, "toolInput is not a string: references are not followed"},
		{"a number", "echo", `7`, "toolInput is not a string"},
		{"too much", "echo", `"{\"x\":\"` + strings.Repeat("y", 300<<10) + `\"}"`, "toolInput has 307"},
	} {
		inBubble(t, func(w *world, h *fakeHost) {
			r := request("a", c.tool, "")
			r.ToolCall.ToolInput = json.RawMessage(c.input)
			h.do(one, ahp.SessionInputNeededSet{Request: r})
			got := h.answer(w.t, "a")
			if got.Success || got.Error == nil || !strings.HasPrefix(got.Error.Message, c.want) {
				w.t.Errorf("%s: %+v, want %q", c.name, got.Error, c.want)
			}
			if w.ran() != 0 || len(w.records) != 1 || !w.records[0].Refused {
				w.t.Errorf("%s: %d ran, records %+v", c.name, w.ran(), w.records)
			}
		})
	}
}

// However often a host asks, a call is carried out once and answered once.
func TestReplaysChangeNothing(t *testing.T) {
	inBubble(t, func(w *world, h *fakeHost) {
		for range 3 {
			h.ask(one, "a", "block", `{}`)
		}
		close(w.block)
		h.answer(w.t, "a")
		for range 3 {
			h.ask(one, "a", "block", `{}`)
		}
		other := request("a", "block", `{"other":true}`)
		other.ID = "another request for the same call"
		h.do(one, ahp.SessionInputNeededSet{Request: other})
		h.answer(w.t, "a")
		if w.ran() != 1 {
			w.t.Errorf("it ran %d times", w.ran())
		}
		same := request("a", "echo", `{}`)
		same.TurnID = "t2" // an id is the turn's
		h.do(one, ahp.SessionInputNeededSet{Request: same})
		if w.ran() != 2 {
			w.t.Error("a call of the same id in another turn was not carried out")
		}
	})
}

// A call goes on while the link is down, and is answered on the next one.
func TestACallSurvivesACut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(one)
		w := newWorld(t, h)
		h.ask(one, "a", "block", `{}`)
		w.end()
		close(w.block)
		time.Sleep(time.Minute)
		w.connect()
		if got := h.answer(t, "a"); !got.Success || w.ran() != 1 {
			t.Errorf("%+v after %d runs", got, w.ran())
		}
	})
}

// An answer that was lost with the link is told again, the same; the call is not carried
// out again.
func TestALostAnswerIsSentAgain(t *testing.T) {
	inBubble(t, func(w *world, h *fakeHost) {
		h.mu.Lock()
		h.mute = true
		h.mu.Unlock()
		h.ask(one, "a", "echo", `{"n":1}`)
		h.mu.Lock()
		h.mute = false
		h.mu.Unlock()
		w.connect()
		if got := h.answer(w.t, "a"); got.Content[0].Text != `{"n":1}` || w.ran() != 1 {
			w.t.Errorf("%+v after %d runs", got, w.ran())
		}
		w.connect()
		h.answer(w.t, "a") // not once more
	})
}

// A call that an earlier daemon has begun is answered as failed, and not carried out
// again.
func TestAnotherDaemonsCallsAreNotRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(one)
		w := newWorld(t, h)
		w.opts.Book = filepath.Join(testkit.Home(t), "calls", "host.json")
		w.restart()
		h.ask(one, "a", "block", `{}`)
		h.ask(one, "b", "echo", `{}`)
		h.answer(t, "b")
		w.restart()
		if got := h.answer(t, "a"); got.Success || !strings.Contains(got.Error.Message, "no longer known") || w.ran() != 2 {
			t.Errorf("%+v after %d runs", got.Error, w.ran())
		}
		h.ask(one, "b", "echo", `{}`) // it is asked for again although it was answered
		if w.ran() != 2 || h.answered("b") != 2 {
			t.Errorf("a replay from before: %d runs, %d answers; want no run, and to be told so", w.ran(), h.answered("b"))
		}
		h.ask(one, "c", "echo", `{}`)
		if got := h.answer(t, "c"); !got.Success {
			t.Errorf("a new call: %+v", got.Error)
		}
	})
}

// A call whose beginning cannot be written down is not carried out.
func TestWithoutABookNothingRuns(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"a file in the place of its directory": func(path string) error { return os.WriteFile(filepath.Dir(path), nil, 0o600) },
		"a file that cannot be read": func(path string) error {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			return os.WriteFile(path, []byte("nonsense"), 0o600)
		},
		"a file of another version": func(path string) error {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			return os.WriteFile(path, []byte(`{"version":2,"begun":[]}`), 0o600)
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			h := newHost(one)
			w := newWorld(t, h)
			w.opts.Book = filepath.Join(testkit.Home(t), "calls", "host.json")
			must.Do(t, spoil(w.opts.Book))
			w.restart()
			h.ask(one, "a", "echo", `{}`)
			if got := h.answer(t, "a"); got.Success || !strings.HasPrefix(got.Error.Message, "the call was not carried out: ") || w.ran() != 0 {
				t.Errorf("%s: %+v after %d runs", name, got.Error, w.ran())
			}
			if w.desk.Status().Problem == "" {
				t.Errorf("%s: no problem is shown", name)
			}
			must.Do(t, errors.Join(os.RemoveAll(filepath.Dir(w.opts.Book)), secret.Dir(filepath.Dir(w.opts.Book))))
			h.ask(one, "b", "echo", `{}`)
			if got := h.answer(t, "b"); !got.Success || w.desk.Status().Problem != "" {
				t.Errorf("%s, removed: %+v, problem %q", name, got.Error, w.desk.Status().Problem)
			}
		})
	}
}

// A request that the host takes down ends the call, and nothing is said.
func TestAHostGivesUp(t *testing.T) {
	for name, give := range map[string]func(w *world, h *fakeHost){
		"the request": func(_ *world, h *fakeHost) { h.do(one, ahp.SessionInputNeededRemoved{ID: "request of a"}) },
		"the session": func(_ *world, h *fakeHost) {
			h.notify(ahp.MethodSessionRemoved, ahp.SessionRemovedParams{Channel: ahp.RootURI, Session: one})
		},
		"while the link is down": func(w *world, h *fakeHost) {
			w.end()
			h.do(one, ahp.SessionInputNeededRemoved{ID: "request of a"})
			w.connect()
		},
	} {
		inBubble(t, func(w *world, h *fakeHost) {
			h.ask(one, "a", "block", `{}`)
			give(w, h)
			if n := h.answered("a"); n != 0 || w.desk.Status().Running != 0 || len(w.records) != 1 || !w.records[0].Void {
				w.t.Errorf("%s: %d answers, %+v, records %+v", name, n, w.desk.Status(), w.records)
			}
		})
	}
}

// Actions between the subscription and its snapshot are applied after it, in order.
func TestActionsBeforeTheSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(one)
		h.sessions[one] = ahp.ReduceSession(h.sessions[one], ahp.SessionInputNeededSet{Request: request("old", "block", `{}`)})
		h.before = func(channel string) {
			if channel == one {
				h.reduceLocked(one, ahp.SessionInputNeededRemoved{ID: "request of old"}) // after the snapshot was made
				h.reduceLocked(one, ahp.SessionInputNeededSet{Request: request("new", "echo", `{}`)})
			}
		}
		w := newWorld(t, h)
		synctest.Wait()
		if got := h.answer(t, "new"); !got.Success {
			t.Errorf("%+v", got)
		}
		if h.answered("old") != 0 || w.desk.Status().Running != 0 {
			t.Errorf("the one that was taken down: %d answers, %+v", h.answered("old"), w.desk.Status())
		}
	})
}

// Actions that the snapshot contains are not applied again.
func TestOldActions(t *testing.T) {
	inBubble(t, func(w *world, h *fakeHost) {
		h.ask(one, "a", "echo", `{}`)
		h.answer(w.t, "a")
		w.connect()
		h.mu.Lock()
		h.seq = 0 // as if it were older than the snapshot
		h.sayLocked(one, ahp.SessionInputNeededSet{Request: request("b", "echo", `{}`)})
		h.mu.Unlock()
		if n := h.answered("b"); n != 0 || w.ran() != 1 {
			w.t.Errorf("an action from before the snapshot: %d answers, %d runs", n, w.ran())
		}
	})
}

// Switched off while a session is being joined, the desk carries out no calls of it.
func TestOffWhileASessionIsJoined(t *testing.T) {
	inBubble(t, func(w *world, h *fakeHost) {
		h.mu.Lock()
		h.sessions[two] = ahp.ReduceSession(ahp.SessionState{}, ahp.SessionInputNeededSet{Request: request("a", "echo", `{}`)})
		h.before = func(channel string) {
			if channel == two {
				go w.desk.Off(context.Background())
				for w.desk.Status().On {
					runtime.Gosched()
				}
			}
		}
		h.mu.Unlock()
		h.notify(ahp.MethodSessionAdded, ahp.SessionAddedParams{Channel: ahp.RootURI, Summary: ahp.SessionSummary{Resource: two}})
		if w.ran() != 0 || h.answered("a") != 0 {
			w.t.Errorf("%d runs, %d answers", w.ran(), h.answered("a"))
		}
		if n := len(h.sessions[one].ActiveClients) + len(h.sessions[two].ActiveClients); n != 0 || h.follows[two] {
			w.t.Errorf("%d offers are left, followed %v", n, h.follows)
		}
	})
}

// Off ends and answers running calls, and then withdraws the tools; later requests are
// ignored.
func TestOff(t *testing.T) {
	inBubble(t, func(w *world, h *fakeHost) {
		h.ask(one, "a", "block", `{}`)
		h.took()
		w.desk.Off(w.t.Context())
		want := []string{"chat/toolCallComplete " + chat, "session/activeClientRemoved " + one, "unsubscribe " + one, "unsubscribe ahp-root://"}
		check.Equal(w.t, "the host heard", want, h.took())
		if got := h.answer(w.t, "a"); got.Success || !strings.Contains(got.Error.Message, "withdrew its tools") {
			w.t.Errorf("answer %+v", got.Error)
		}
		if n := len(h.sessions[one].ActiveClients); n != 0 {
			w.t.Errorf("%d clients are left", n)
		}
		h.mu.Lock()
		h.follows[one] = true
		h.mu.Unlock()
		h.ask(one, "b", "echo", `{}`)
		w.connect()
		if diff := cmp.Diff([]string{"initialize ahp-root://"}, h.took()); diff != "" || w.ran() != 1 || w.desk.Status().On {
			w.t.Errorf("afterwards (-want +got):\n%s%d runs, %+v", diff, w.ran(), w.desk.Status())
		}
		w.desk.On()
		if got := h.answer(w.t, "b"); !got.Success || w.desk.Status().Sessions != 1 {
			w.t.Errorf("on again: %+v, %+v", got, w.desk.Status())
		}
		w.end()
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
		defer cancel()
		w.desk.Off(ctx)
		if ctx.Err() != nil {
			w.t.Error("without a connection, Off waits")
		}
	})
}

// A flood of calls is answered, few at a time, and none runs twice.
func TestAFloodOfCalls(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	inBubble(t, func(w *world, h *fakeHost) {
		const many = 10_000
		for i := range many {
			h.mu.Lock()
			h.sayLocked(one, ahp.SessionInputNeededSet{Request: request(fmt.Sprint(i), "block", `{}`)})
			h.mu.Unlock()
			if i%100 == 0 {
				synctest.Wait()
			}
		}
		synctest.Wait()
		if w.ran() != 8 || w.desk.Status().Running != 8 {
			w.t.Errorf("%d run at a time", w.ran())
		}
		close(w.block)
		synctest.Wait()
		h.mu.Lock()
		defer h.mu.Unlock()
		for id, all := range h.answers {
			if len(all) != 1 {
				w.t.Errorf("call %s was answered %d times", id, len(all))
			}
		}
		if n := len(h.answers); n != many || len(w.records) != many {
			w.t.Errorf("%d answers and %d records, want %d", n, len(w.records), many)
		}
		if w.most > 8 || len(w.runs) > 120 {
			w.t.Errorf("%d at a time, %d in a minute", w.most, len(w.runs))
		}
	})
}

// More calls in a minute than are taken wait for the next one.
func TestCallsInAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(one)
		newWorld(t, h)
		for i := range 121 {
			h.ask(one, fmt.Sprint(i), "echo", `{}`)
		}
		if got := h.answer(t, "119"); !got.Success {
			t.Errorf("number 120: %+v", got.Error)
		}
		if got := h.answer(t, "120"); got.Success || !strings.Contains(got.Error.Message, "the maximum is 120 a minute") {
			t.Errorf("number 121: %+v", got)
		}
		time.Sleep(time.Minute)
		h.ask(one, "later", "echo", `{}`)
		if got := h.answer(t, "later"); !got.Success {
			t.Errorf("a minute later: %+v", got.Error)
		}
	})
}

// A host that refuses the tools is a problem to be shown, in words that a terminal can
// stand.
func TestTheToolsAreRefused(t *testing.T) {
	inBubble(t, func(w *world, h *fakeHost) {
		reason := "not \x1b[31myours"
		raw := ahp.AppendAction(nil, ahp.SessionActiveClientSet{ActiveClient: ahp.ActiveClient{ClientID: us}})
		h.notify(ahp.MethodAction, ahp.Envelope{Channel: one, ServerSeq: 99, Action: raw, Origin: &ahp.Origin{ClientID: us, ClientSeq: 1}, RejectionReason: &reason})
		if got := w.desk.Status().Problem; got != "the host refused the tools: not [31myours" {
			w.t.Errorf("problem = %q", got)
		}
	})
}
