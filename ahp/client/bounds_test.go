package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/jsonrpc"
)

// hostileLists are members of a host's answers that hold a list of whatever costs the most once it is decoded.
var hostileLists = map[string]struct{ method, head, element, tail string }{
	"snapshots of initialize":     {ahp.MethodInitialize, `{"protocolVersion":"1.0.0","serverSeq":1,"snapshots":[`, `{}`, `]}`},
	"characters of initialize":    {ahp.MethodInitialize, `{"protocolVersion":"1.0.0","serverSeq":1,"snapshots":[],"completionTriggerCharacters":[`, `""`, `]}`},
	"marker of initialize":        {ahp.MethodInitialize, `{"protocolVersion":"1.0.0","serverSeq":1,"snapshots":[],"clientTerminals":[`, `{}`, `]}`},
	"actions of reconnect":        {ahp.MethodReconnect, `{"type":"replay","missing":[],"actions":[`, `{}`, `]}`},
	"origins of reconnect":        {ahp.MethodReconnect, `{"type":"replay","missing":[],"actions":[`, `{"origin":{}}`, `]}`},
	"missing of reconnect":        {ahp.MethodReconnect, `{"type":"replay","actions":[],"missing":[`, `""`, `]}`},
	"snapshots of reconnect":      {ahp.MethodReconnect, `{"type":"snapshot","snapshots":[`, `{}`, `]}`},
	"content of a terminal":       {ahp.MethodSubscribe, `{"snapshot":{"resource":"ahp-terminal:/1","fromSeq":1,"state":{"content":[`, `{}`, `]}}}`},
	"terminals of the root":       {ahp.MethodSubscribe, `{"snapshot":{"resource":"ahp-root://","fromSeq":1,"state":{"terminals":[`, `{}`, `]}}}`},
	"agents of the root":          {ahp.MethodSubscribe, `{"snapshot":{"resource":"ahp-root://","fromSeq":1,"state":{"agents":[`, `{}`, `]}}}`},
	"clients of a session":        {ahp.MethodSubscribe, `{"snapshot":{"resource":"ahp-session:/1","fromSeq":1,"state":{"activeClients":[`, `{}`, `]}}}`},
	"requests in a session":       {ahp.MethodSubscribe, `{"snapshot":{"resource":"ahp-session:/1","fromSeq":1,"state":{"inputNeeded":[`, `{}`, `]}}}`},
	"turns of a chat":             {ahp.MethodSubscribe, `{"snapshot":{"resource":"ahp-chat:/1","fromSeq":1,"state":{"turns":[`, `{}`, `]}}}`},
	"tools of a session's client": {ahp.MethodSubscribe, `{"snapshot":{"resource":"ahp-session:/1","fromSeq":1,"state":{"activeClients":[{"tools":[`, `{}`, `]}]}}}`},
}

// states are what a subscriber makes of a snapshot.
func decodeState(s *ahp.Snapshot) {
	for _, state := range []any{&ahp.TerminalState{}, &ahp.RootState{}, &ahp.SessionState{}, &ahp.ChatState{}} {
		_ = json.Unmarshal(s.State, state)
	}
}

// The largest answer that a client for lending takes costs little memory, whatever it holds, and one with more values ends the connection.
func TestHostileAnswersCostLittleMemory(t *testing.T) {
	for name, c := range hostileLists {
		t.Run(name, func(t *testing.T) {
			with := func(elements int) json.RawMessage {
				return json.RawMessage(c.head + strings.TrimSuffix(strings.Repeat(c.element+",", elements), ",") + c.tail)
			}
			per := strings.Count(c.element, "{") + strings.Count(c.element, `""`)
			most := (client.LenderMaxValues - 100) / per
			if cost := costOf(t, c.method, with(most)); cost > 32<<20 {
				t.Errorf("the largest answer costs %d MiB", cost>>20)
			}
			if _, err := answered(t, c.method, with(client.LenderMaxValues+1)); !errors.Is(err, jsonrpc.ErrTooMany) {
				t.Errorf("an answer with too many values: %v, want %v", err, jsonrpc.ErrTooMany)
			}
		})
	}
}

// The largest answer takes so little time that other terminals need not wait for it. As a machine that tests many things may stand still, the time is
// compared with what encoding/json needs for a message with as many values, which is about 16 ms where a terminal is to wait for 50 ms at most.
func TestHostileAnswersCostLittleTime(t *testing.T) {
	var members strings.Builder
	for n := range client.LenderMaxValues - 100 { // as many values, in as long a message
		fmt.Fprintf(&members, `,"%0*x":{}`, client.LenderReadLimit/client.LenderMaxValues-8, n)
	}
	yardstick := json.RawMessage(`{"x":1` + members.String() + `}`)
	for name, c := range hostileLists {
		t.Run(name, func(t *testing.T) {
			per := strings.Count(c.element, "{") + strings.Count(c.element, `""`)
			most := (client.LenderMaxValues - 100) / per
			answer := json.RawMessage(c.head + strings.TrimSuffix(strings.Repeat(c.element+",", most), ",") + c.tail)
			decode, take := time.Hour, time.Hour
			for n := 0; n == 0 || n < 50 && take > 3*decode; n++ { // the best of them: something else may run
				began := time.Now()
				var v any
				_ = json.Unmarshal(yardstick, &v)
				decode = min(decode, time.Since(began))
				began = time.Now()
				if s, _ := answered(t, c.method, answer); s != nil {
					decodeState(s)
				}
				take = min(take, time.Since(began))
			}
			if take > 3*decode {
				t.Errorf("the largest answer takes %v where encoding/json takes %v", take, decode)
			}
		})
	}
}

// costOf is how much is allocated for an answer, in bytes: more than is in use at any time.
func costOf(t *testing.T, method string, answer json.RawMessage) uint64 {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s, _ := answered(t, method, answer)
	if s != nil {
		decodeState(s)
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// answered connects a client to a host that gives that answer to the method, and says what came of it.
func answered(t *testing.T, method string, answer json.RawMessage) (*ahp.Snapshot, error) {
	t.Helper()
	h, ch := newHost(t)
	h.answer(method, answer)
	o := client.Options{ClientID: "laptop", MaxValues: client.LenderMaxValues}
	if method == ahp.MethodReconnect {
		o.Resume = &client.Resume{Initial: ahp.InitializeResult{ProtocolVersion: "1.0.0"}}
	}
	c, err := client.ConnectChannel(t.Context(), ch, o)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	if method != ahp.MethodSubscribe {
		return nil, nil
	}
	r, err := c.Subscribe(context.Background(), uri)
	if err != nil {
		return nil, err
	}
	return r.Snapshot, nil
}
