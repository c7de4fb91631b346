package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"testing"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/testkit"
	"tether/jsonrpc"
)

// decodeState decodes a snapshot as a subscriber does.
func decodeState(s *ahp.Snapshot) {
	for _, state := range []any{&ahp.TerminalState{}, &ahp.RootState{}, &ahp.SessionState{}, &ahp.ChatState{}} {
		_ = json.Unmarshal(s.State, state)
	}
}

// The largest answer that a lending client accepts costs little memory, whatever it
// contains, and an answer with more values ends the connection.
func TestHostileAnswersCostLittleMemory(t *testing.T) {
	for name, c := range testkit.HostileAnswers {
		t.Run(name, func(t *testing.T) {
			if cost := costOf(t, c.Method, c.Result(client.LenderMaxValues-100)); cost > 32<<20 {
				t.Errorf("the largest answer costs %d MiB", cost>>20)
			}
			if _, err := answered(t, c.Method, c.Result(2*client.LenderMaxValues)); !errors.Is(err, jsonrpc.ErrTooMany) {
				t.Errorf("an answer with too many values: %v, want %v", err, jsonrpc.ErrTooMany)
			}
		})
	}
}

// The largest answer takes so little time that other terminals need not wait for it. A
// busy test machine may stand still, so the time is compared with that of encoding/json
// for a message with as many values: about 16 ms on a machine where a terminal may wait
// for at most 50 ms.
func TestHostileAnswersCostLittleTime(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	yardstick := testkit.LargeObject(client.LenderMaxValues-100, client.LenderReadLimit-client.LenderReadLimit/8) // as many values in a message of that size
	const most = 6                                                                                                // two goroutines and the collector work on an answer, on processors that others use; work that grows faster than the answer takes far longer
	tick := time.Duration(0)
	if runtime.GOOS == "windows" {
		tick = 16 * time.Millisecond // of the clock; waking a goroutine may take as long
	}
	for name, c := range testkit.HostileAnswers {
		t.Run(name, func(t *testing.T) {
			answer := c.Result(client.LenderMaxValues - 100)
			decode, take := time.Hour, time.Hour
			for n := 0; n == 0 || n < 50 && take > most*decode+tick; n++ { // the best try counts: other programs may disturb some
				began := time.Now()
				var v any
				_ = json.Unmarshal(yardstick, &v)
				decode = min(decode, time.Since(began))
				began = time.Now()
				if s, _ := answered(t, c.Method, answer); s != nil {
					decodeState(s)
				}
				take = min(take, time.Since(began))
			}
			if take > most*decode+tick {
				t.Errorf("the largest answer takes %v where encoding/json takes %v", take, decode)
			}
		})
	}
}

// costOf returns how many bytes are allocated for an answer in all, which is more than is
// in use at any time.
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

// answered connects a client to a host that gives that answer to the method, and returns
// the result.
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
