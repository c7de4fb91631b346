package ahp_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/ahp"
	"tether/internal/testkit/must"
)

// seeds adds the actions and states of all reducer cases.
func seeds(f *testing.F, pick func(c reducerCase) []json.RawMessage) {
	for _, dir := range []string{"testdata/reducers", "testdata/derived"} {
		entries := must.Get(os.ReadDir(dir))(f)
		for _, e := range entries {
			raw := must.Get(os.ReadFile(dir + "/" + e.Name()))(f)
			var c reducerCase
			must.Do(f, json.Unmarshal(raw, &c))
			for _, s := range pick(c) {
				f.Add([]byte(s))
			}
		}
	}
}

// FuzzDecodeAction: an action decoded and encoded once stays the same, and reducing it
// never fails.
func FuzzDecodeAction(f *testing.F) {
	seeds(f, func(c reducerCase) []json.RawMessage { return c.Actions })
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := ahp.DecodeAction(raw)
		if err != nil {
			return
		}
		for _, version := range []string{"1.0.0", "0.8.0"} {
			once := ahp.AppendActionFor(nil, a, version)
			b, err := ahp.DecodeAction(once)
			if err != nil {
				t.Fatalf("%s: %v", once, err)
			}
			if twice := ahp.AppendActionFor(nil, b, version); string(once) != string(twice) {
				t.Errorf("not stable for %s:\n%s", version, cmp.Diff(string(once), string(twice)))
			}
		}
		_ = ahp.ValidateAction(a)
		_ = ahp.ReduceTerminal(ahp.TerminalState{}, a)
		_ = ahp.ReduceRoot(ahp.RootState{}, a)
		reduceTwice(t, a)
	})
}

// reduceTwice: after any action, a session and a chat can still be encoded and decoded.
func reduceTwice(t *testing.T, a ahp.Action) {
	t.Helper()
	session := ahp.ReduceSession(ahp.SessionState{}, a)
	stableState[ahp.SessionState](t, encode(t, ahp.ReduceSession(session, a), "1.0.0"))
	chat := ahp.ChatState{ActiveTurn: &ahp.Turn{ID: "t", ResponseParts: []ahp.ResponsePart{
		{Kind: ahp.PartToolCall, ToolCall: &ahp.ToolCall{ToolCallID: "c", Status: ahp.ToolRunning}}}}}
	for _, at := range []int64{1, 2} {
		chat = ahp.ReduceChat(chat, a, time.UnixMilli(at))
	}
	stableState[ahp.ChatState](t, encode(t, chat, "1.0.0"))
}

func FuzzTerminalState(f *testing.F) {
	seeds(f, func(c reducerCase) []json.RawMessage { return []json.RawMessage{c.Initial, c.Expected} })
	f.Fuzz(func(t *testing.T, raw []byte) { stableState[ahp.TerminalState](t, raw) })
}

// FuzzScreen: for any input, a decoded screen is within its bounds and stays the same
// when it is encoded and decoded; the reducer keeps it within the bounds.
func FuzzScreen(f *testing.F) {
	for _, seed := range []string{`{"cols":80,"rows":24,"data":"\u001b[2Jx","sizes":[[0,80,25],[7,100,30]]}`, `{"cols":1,"rows":1001}`, `{"cols":1,"rows":1,"sizes":[[-1,2,2]]}`,
		`{"cols":1,"rows":1,"sizes":[[9,2,2],[8,2,2]]}`, `{"cols":1,"rows":1,"truncated":true}`, `[]`, `null`} {
		f.Add([]byte(seed), int64(3))
	}
	f.Fuzz(func(t *testing.T, raw []byte, n int64) {
		s := ahp.DecodeScreen(raw)
		if s == nil {
			return
		}
		if s.Cols < 1 || s.Cols > ahp.MaxSize || s.Rows < 1 || s.Rows > ahp.MaxSize || len(s.Data) > ahp.MaxScreen || len(s.Sizes) > ahp.MaxScreenSizes {
			t.Fatalf("out of bounds: %+v", s)
		}
		for range 3 {
			s = s.Resized(1<<40, n, n)
		}
		again, err := json.Marshal(s)
		if err != nil || len(s.Sizes) > ahp.MaxScreenSizes {
			t.Fatal(err, len(s.Sizes))
		}
		if n > 0 && n <= ahp.MaxSize && s.Sizes[0][0] <= 1<<40 && len(s.Sizes) > 3 && s.Sizes[len(s.Sizes)-4][0] <= 1<<40 {
			if found := ahp.DecodeScreen(again); found == nil || found.Data != s.Data {
				t.Fatalf("%s is not found again", again)
			}
		}
	})
}

func FuzzRootState(f *testing.F) {
	seeds(f, func(c reducerCase) []json.RawMessage { return []json.RawMessage{c.Initial, c.Expected} })
	f.Fuzz(func(t *testing.T, raw []byte) { stableState[ahp.RootState](t, raw) })
}

func FuzzSessionState(f *testing.F) {
	seeds(f, func(c reducerCase) []json.RawMessage { return []json.RawMessage{c.Initial, c.Expected} })
	f.Fuzz(func(t *testing.T, raw []byte) { stableState[ahp.SessionState](t, raw) })
}

func FuzzChatState(f *testing.F) {
	seeds(f, func(c reducerCase) []json.RawMessage { return []json.RawMessage{c.Initial, c.Expected} })
	f.Fuzz(func(t *testing.T, raw []byte) { stableState[ahp.ChatState](t, raw) })
}

// stableState: in either shape, a state decoded and encoded once stays the same.
func stableState[S any](t *testing.T, raw []byte) {
	var s S
	if json.Unmarshal(raw, &s) != nil {
		return
	}
	for _, version := range []string{"1.0.0", "0.8.0"} {
		once := encode(t, s, version)
		var again S
		if err := json.Unmarshal(once, &again); err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		if twice := encode(t, again, version); string(once) != string(twice) {
			t.Errorf("not stable for %s:\n%s", version, cmp.Diff(string(once), string(twice)))
		}
	}
}

// FuzzDecodeParams: any params from a peer give a value, or an error of bounded length.
func FuzzDecodeParams(f *testing.F) {
	f.Add([]byte(`{"channel":"ahp-root://","protocolVersions":["1.0.0"],"clientId":"c","initialSubscriptions":["ahp-root://"]}`))
	f.Add([]byte(`{"channel":"a:b","claim":{"kind":"client","clientId":"c"},"cols":80,"rows":24,"executionTarget":"client"}`))
	f.Add([]byte(`{"channel":"a:b","activeClient":{"clientId":"c","tools":[{"name":"run","inputSchema":{"type":"object"}}]}}`))
	f.Add([]byte(`{"type":"replay","actions":[{"channel":"a:b","action":{"type":"x"},"serverSeq":1}],"missing":[]}`))
	f.Add([]byte(`{"channel":"a:b","grants":[{"to":"group:web","from":7}],"denied":["ann"],"may":["ann"],"watching":[{"who":"ann","kind":"person","since":"2026-01-02T03:04:05Z"}],"id":"abcdefgh"}`))
	f.Add([]byte(`{"channel":"a:b","reader":{"names":["ann","group:web"],"owner":true},"tool":"verdict","arguments":{"names":["dev"]},"shows":16000,"answer":{},"error":"none","unknown":true}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, v := range []any{new(ahp.InitializeParams), new(ahp.InitializeResult), new(ahp.ReconnectParams),
			new(ahp.ReconnectResult), new(ahp.CreateTerminalParams), new(ahp.SubscribeParams), new(ahp.AckParams), new(ahp.CreateSessionParams), new(ahp.DisposeSessionParams),
			new(ahp.AudienceParams), new(ahp.WatchersParams), new(ahp.ShareParams), new(ahp.UnshareParams), new(ahp.RunsParams), new(ahp.RunsResult)} {
			if err := ahp.DecodeParams(raw, v); err != nil && len(err.Error()) > 300 {
				t.Errorf("%T: an error of %d bytes repeats the input", v, len(err.Error()))
			}
			if r, ok := v.(*ahp.InitializeResult); ok {
				_, _ = ahp.FindClientTerminals(*r)
			}
		}
	})
}
