package ahp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/ahp"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// The messages of a client's tool call, from the tools that the client publishes to the
// result.
func TestClientToolActions(t *testing.T) {
	ref := ahp.ToolCallRef{TurnID: "t", ToolCallID: "c"}
	running := ahp.ToolCall{Status: ahp.ToolRunning, ToolCallID: "c", ToolName: "run", DisplayName: "Run",
		Contributor:       &ahp.Contributor{Kind: ahp.ContributorClient, ClientID: "laptop"},
		InvocationMessage: ahp.PlainText("run"), ToolInput: ahp.NewToolInput([]byte(`{"a":1}`)), Confirmed: ahp.ConfirmedNotNeeded}
	for want, a := range map[string]ahp.Action{
		`{"type":"session/activeClientSet","activeClient":{"clientId":"laptop","tools":[{"name":"run","inputSchema":{"type":"object"}}]}}`: ahp.SessionActiveClientSet{
			ActiveClient: ahp.ActiveClient{ClientID: "laptop", Tools: []ahp.ToolDefinition{{Name: "run", InputSchema: []byte(`{"type":"object"}`)}}}},
		`{"type":"session/activeClientSet","activeClient":{"clientId":"laptop","tools":[]}}`: ahp.SessionActiveClientSet{
			ActiveClient: ahp.ActiveClient{ClientID: "laptop"}},
		`{"type":"session/activeClientRemoved","clientId":"laptop"}`: ahp.SessionActiveClientRemoved{ClientID: "laptop"},
		`{"type":"chat/toolCallStart","turnId":"t","toolCallId":"c","toolName":"run","displayName":"Run","contributor":{"kind":"client","clientId":"laptop"}}`: ahp.ChatToolCallStart{
			ToolCallRef: ref, ToolName: "run", DisplayName: "Run", Contributor: running.Contributor},
		`{"type":"chat/toolCallReady","turnId":"t","toolCallId":"c","invocationMessage":"run","toolInput":"{\"a\":1}","confirmed":"not-needed"}`: ahp.ChatToolCallReady{
			ToolCallRef: ref, InvocationMessage: ahp.Text{Value: "run"}, ToolInput: running.ToolInput, Confirmed: running.Confirmed},
		`{"type":"session/inputNeededSet","request":{"id":"i","kind":"toolClientExecution","chat":"ahp-chat:/1","turnId":"t","clientId":"laptop","toolCall":` +
			`{"status":"running","toolCallId":"c","toolName":"run","displayName":"Run","contributor":{"kind":"client","clientId":"laptop"},` +
			`"invocationMessage":"run","toolInput":"{\"a\":1}","confirmed":"not-needed"}}}`: ahp.SessionInputNeededSet{
			Request: ahp.InputRequest{ID: "i", Kind: ahp.InputToolClientExecution, Chat: "ahp-chat:/1", TurnID: "t", ClientID: "laptop", ToolCall: &running}},
		`{"type":"chat/toolCallConfirmed","turnId":"t","toolCallId":"c","approved":false,"reason":"denied"}`: ahp.ChatToolCallConfirmed{
			ToolCallRef: ref, Reason: ahp.ReasonDenied},
		`{"type":"chat/toolCallContentChanged","turnId":"t","toolCallId":"c","content":[{"type":"terminal","resource":"ahp-terminal:/1","title":"make","isPty":true}]}`: ahp.ChatToolCallContentChanged{
			ToolCallRef: ref, Content: []ahp.ToolContent{ahp.TerminalContent("ahp-terminal:/1", "make", true)}},
		`{"type":"chat/toolCallComplete","turnId":"t","toolCallId":"c","result":{"success":true,"pastTenseMessage":{"markdown":"*ran*"},"content":[{"type":"text","text":"<ok>"}]}}`: ahp.ChatToolCallComplete{
			ToolCallRef: ref, Result: ahp.ToolResult{Success: true, PastTenseMessage: ahp.Text{Value: "*ran*", Markdown: true}, Content: []ahp.ToolContent{ahp.TextContent("<ok>")}}},
	} {
		check.Equal(t, fmt.Sprintf("%T encoded", a), want, string(ahp.AppendAction(nil, a)))
		got, err := ahp.DecodeAction([]byte(want))
		if err != nil || ahp.ValidateAction(got) != nil {
			t.Errorf("%s: %v, %v", want, err, ahp.ValidateAction(got))
		}
		if again := string(ahp.AppendAction(nil, got)); again != want {
			t.Errorf("decoded and encoded:\n got %s\nwant %s", again, want)
		}
	}
}

// Values for which this package has no type survive decoding and encoding.
func TestUnknownSurvives(t *testing.T) {
	for _, text := range []string{
		`{"type":"chat/responsePart","turnId":"t","part":{"kind":"systemNotification","content":"n","_meta":{"k":[1]}}}`,
		`{"type":"chat/toolCallContentChanged","turnId":"t","toolCallId":"c","_meta":{"ptyTerminal":{"input":"i"}},"content":[{"type":"subagent","resource":"a:b"}]}`,
		`{"type":"session/activeClientSet","activeClient":{"clientId":"c","tools":[{"name":"n","outputSchema":{},"annotations":{"readOnlyHint":true},"_meta":{"x":1}}],"customizations":[{}]}}`,
	} {
		a := must.Get(ahp.DecodeAction([]byte(text)))(t)
		equalExactly(t, []byte(text), ahp.AppendAction(nil, a))
	}
}

func TestValidateSessionActions(t *testing.T) {
	tools := func(definitions ...string) string {
		return `{"type":"session/activeClientSet","activeClient":{"clientId":"c","tools":[` + strings.Join(definitions, ",") + `]}}`
	}
	many := make([]string, ahp.MaxTools+1)
	for i := range many {
		many[i] = `{"name":"a` + strings.Repeat("b", i) + `"}`
	}
	for name, tt := range map[string]struct{ action, want string }{
		"tools":          {tools(`{"name":"run-it_2.0"}`), ""},
		"no client":      {`{"type":"session/activeClientSet","activeClient":{"clientId":"","tools":[]}}`, "clientId is missing or empty"},
		"no name":        {tools(`{"name":""}`), "name has 0 bytes"},
		"a long name":    {tools(`{"name":"` + strings.Repeat("a", ahp.MaxToolName+1) + `"}`), "name has 129 bytes"},
		"a strange name": {tools(`{"name":"a\u001bb"}`), "may hold only letters"},
		"one name twice": {tools(`{"name":"a"}`, `{"name":"a"}`), `tool "a" is there twice`},
		"too many":       {tools(many...), "65 tools, at most 64"},
		"a schema":       {tools(`{"name":"a","inputSchema":[]}`), "inputSchema is not an object"},
		"a large schema": {tools(`{"name":"a","inputSchema":{"x":"` + strings.Repeat("a", ahp.MaxSchema) + `"}}`), "at most 65536 are allowed"},
		"a description":  {tools(`{"name":"a","description":"` + strings.Repeat("a", ahp.MaxDescription+1) + `"}`), "description"},
		"no turn":        {`{"type":"chat/toolCallComplete","turnId":"","toolCallId":"c","result":{}}`, "turnId is empty"},
		"no call":        {`{"type":"chat/toolCallComplete","turnId":"t","toolCallId":"","result":{}}`, "toolCallId is empty"},
		"a long id":      {`{"type":"chat/toolCallComplete","turnId":"t","toolCallId":"` + strings.Repeat("a", ahp.MaxID+1) + `","result":{}}`, "toolCallId"},
		"no reason":      {`{"type":"chat/toolCallConfirmed","turnId":"t","toolCallId":"c","approved":false,"reason":"x"}`, `want "denied" or "skipped"`},
		"blocks":         {`{"type":"chat/toolCallContentChanged","turnId":"t","toolCallId":"c","content":[` + strings.Repeat(`{"type":"text","text":""},`, ahp.MaxToolContents) + `{"type":"x"}]}`, "257 blocks"},
		"no terminal":    {`{"type":"chat/toolCallContentChanged","turnId":"t","toolCallId":"c","content":[{"type":"terminal","resource":"","title":""}]}`, "resource is missing"},
		"structured":     {`{"type":"chat/toolCallComplete","turnId":"t","toolCallId":"c","result":{"structuredContent":[1]}}`, "structuredContent is not an object"},
		"no time":        {`{"type":"chat/turnCancelled","turnId":"","duration":0}`, "turnId is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := ahp.DecodeAction([]byte(tt.action))
			must.Do(t, err)
			err = ahp.ValidateAction(a)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestToolArguments(t *testing.T) {
	for raw, want := range map[string]string{
		``: `{}`, `null`: `{}`, `""`: `{}`, `"{\"a\":[1]}"`: `{"a":[1]}`,
		`"[1]"`: "error", `"null"`: "error", `"ls -la"`: "error", `{"uri":"a:b"}`: "error", `7`: "error",
	} {
		got, err := ahp.ToolCall{ToolInput: json.RawMessage(raw)}.Arguments()
		if err != nil {
			got = json.RawMessage("error")
		}
		if string(got) != want {
			t.Errorf("%s: got %s, want %s (%v)", raw, got, want, err)
		}
	}
}

// Without a request, the state has no list of them, as at the beginning.
func TestInputNeeded(t *testing.T) {
	need := func(id string) ahp.InputRequest {
		return ahp.InputRequest{ID: id, Kind: ahp.InputToolClientExecution, Chat: "a:b"}
	}
	var s ahp.SessionState
	for i, step := range []struct {
		action ahp.Action
		want   []ahp.InputRequest
	}{
		{ahp.SessionInputNeededSet{Request: need("1")}, []ahp.InputRequest{need("1")}},
		{ahp.SessionInputNeededSet{Request: need("2")}, []ahp.InputRequest{need("1"), need("2")}},
		{ahp.SessionInputNeededRemoved{ID: "9"}, []ahp.InputRequest{need("1"), need("2")}},
		{ahp.SessionInputNeededRemoved{ID: "1"}, []ahp.InputRequest{need("2")}},
		{ahp.SessionInputNeededRemoved{ID: "2"}, nil},
	} {
		s = ahp.ReduceSession(s, step.action)
		check.Equal(t, fmt.Sprintf("step %d", i), step.want, s.InputNeeded)
	}
}

// Of a request of another kind, which no client here answers, the daemon reads only what
// kind it is.
func TestOtherRequests(t *testing.T) {
	for _, text := range []string{
		`{"id":"i","kind":"chatInput","chat":"a:b","turnId":7,"request":{"id":"q"}}`,
		`{"id":"i","kind":"toolConfirmation","chat":"a:b","turnId":"t","toolCall":{"status":"pending-confirmation"}}`,
	} {
		a, ok := action(t, `{"type":"session/inputNeededSet","request":`+text+`}`).(ahp.SessionInputNeededSet)
		if !ok || a.Request.ID != "i" || a.Request.Chat != "a:b" || a.Request.ToolCall != nil || a.Request.Kind == "" {
			t.Errorf("%s: %+v", text, a)
		}
	}
}

func TestReduceChatSharesNothing(t *testing.T) {
	at := time.UnixMilli(1)
	ref := ahp.ToolCallRef{TurnID: "t", ToolCallID: "c"}
	chat := ahp.ReduceChat(ahp.ChatState{}, ahp.ChatTurnStarted{TurnID: "t"}, at)
	chat = ahp.ReduceChat(chat, ahp.ChatToolCallStart{ToolCallRef: ref}, at)
	left := ahp.ReduceChat(chat, ahp.ChatToolCallReady{ToolCallRef: ref, Confirmed: ahp.ConfirmedNotNeeded}, at)
	right := ahp.ReduceChat(chat, ahp.ChatTurnCancelled{TurnID: "t", Duration: -1}, at)
	if got := chat.ActiveTurn.ToolCall("c").Status; got != ahp.ToolStreaming {
		t.Errorf("before: %s", got)
	}
	if got := left.ActiveTurn.ToolCall("c"); got.Status != ahp.ToolRunning || got.CalledAt("") {
		t.Errorf("left: %+v", got)
	}
	if got := right.Turns[0]; got.ToolCall("c").Status != ahp.ToolCancelled || *got.Duration != 0 || right.ActiveTurn != nil {
		t.Errorf("right: %+v", right)
	}
	if right.ModifiedAt != "1970-01-01T00:00:00.001Z" {
		t.Errorf("modified at %s", right.ModifiedAt)
	}
}

// A snapshot shares memory with the state: a later change of a chat must not change it.
func TestAChangedChatLeavesTheStateBefore(t *testing.T) {
	chat := func(status ahp.SessionStatus, at string) ahp.ChatSummary {
		return ahp.ChatSummary{Resource: "ahp-chat:/1", Title: "one", Status: status, ModifiedAt: at}
	}
	before := ahp.SessionState{Chats: []ahp.ChatSummary{chat(1, "then")}}
	after := ahp.ReduceSession(before, action(t, `{"type":"session/chatUpdated","chat":"ahp-chat:/1","changes":{"status":8,"modifiedAt":"now"}}`))
	if diff := cmp.Diff([]ahp.ChatSummary{chat(1, "then")}, before.Chats); diff != "" {
		t.Errorf("the state before has changed (-was +is):\n%s", diff)
	}
	check.Equal(t, "the state after", []ahp.ChatSummary{chat(8, "now")}, after.Chats)
}

func action(t *testing.T, text string) ahp.Action {
	t.Helper()
	return must.Get(ahp.DecodeAction([]byte(text)))(t)
}
