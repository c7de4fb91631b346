package jsonrpc_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"tether/internal/jsonspan"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// FuzzSplit checks that split agrees with encoding/json, which takes the last of
// duplicate members, and that it tells valid JSON that is not an object from invalid
// JSON.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1]}}`, `{"id":"x","result":null}`,
		`{"error":{"code":1},"id":null,"id":2}`, `[{"id":1}]`, `{"\u006dethod":"m"}`, `{"method":"m"`, `null`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := jsonrpc.Split(data)
		if err != nil {
			if errors.Is(err, jsonspan.ErrNotObject) != json.Valid(data) && jsonspan.Valid(data) {
				t.Fatalf("split(%q) = %v", data, err)
			}
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(data, &want); err != nil {
			t.Fatalf("split accepts %q, encoding/json says %v", data, err)
		}
		for key, span := range map[string][]byte{
			"jsonrpc": got.Version, "id": got.ID, "method": got.Method,
			"params": got.Params, "result": got.Result, "error": got.Err,
		} {
			if !bytes.Equal(span, want[key]) || (span == nil) != (want[key] == nil) {
				t.Fatalf("split(%q): %s = %q, want %q", data, key, span, want[key])
			}
		}
	})
}

// FuzzReceive checks that no message ends a peer, and that each answer is one valid
// message in UTF-8, even if the echoed text is not.
func FuzzReceive(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{}}`, `{"jsonrpc":"2.0","id":1,"result":1}`,
		`{"id":1,"error":{"code":1,"message":"\u0000"}}`, `[`, `{"method":"\ud800","id":"\ud800"}`,
		"{\"method\":\"\xff\",\"id\":1}", "{\"method\":\"m\",\"id\":\"\xff\"}",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		a, b := testkit.Channels()
		p := jsonrpc.NewPeer(a, jsonrpc.Options{})
		stop := run(t, p)
		go func() {
			_ = b.Send(t.Context(), data)
			_ = b.Send(t.Context(), []byte(`{"jsonrpc":"2.0","id":"last","method":"last"}`))
		}()
		for {
			msg, err := b.Recv(t.Context())
			if err != nil {
				t.Fatalf("after %q: %v", data, err)
			}
			var reply struct {
				ID    any
				Error *jsonrpc.Error
			}
			if err := json.Unmarshal(msg, &reply); err != nil || reply.Error == nil || !utf8.Valid(msg) {
				t.Fatalf("%q was answered with %q: %v", data, msg, err)
			}
			if reply.ID == "last" && reply.Error.Code == jsonrpc.CodeMethodNotFound {
				break
			}
		}
		if err := stop(); !errors.Is(err, jsonrpc.ErrClosed) {
			t.Fatalf("Run = %v", err)
		}
	})
}

// A loop is a channel on which the same message arrives whenever it is let.
type loop struct {
	jsonrpc.Channel
	msg  []byte
	let  chan struct{}
	sent chan struct{}
}

func newLoop(msg string) *loop {
	a, _ := testkit.Channels()
	return &loop{Channel: a, msg: []byte(msg), let: make(chan struct{}), sent: make(chan struct{}, 1)}
}

func (l *loop) Recv(context.Context) ([]byte, error) {
	if _, ok := <-l.let; ok {
		return l.msg, nil
	}
	return l.Channel.Recv(context.Background())
}

func (l *loop) Send(context.Context, []byte) error {
	l.sent <- struct{}{}
	return nil
}

func TestNotificationDoesNotAllocate(t *testing.T) {
	handled := make(chan struct{})
	l := newLoop(`{"jsonrpc":"2.0","method":"action","params":{"channel":"ahp-terminal:/1","serverSeq":7}}`)
	p := jsonrpc.NewPeer(l, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) {
		if r.Method != "action" || len(r.Params) == 0 || !r.IsNotification() {
			t.Errorf("handled %+v", r)
		}
		handled <- struct{}{}
	})})
	stop := run(t, p)
	allocs := testing.AllocsPerRun(200, func() {
		l.let <- struct{}{}
		<-handled
	})
	if allocs != 0 {
		t.Errorf("%v allocations for a notification, want 0", allocs)
	}
	p.Close()
	close(l.let)
	_ = stop()
}

func TestSendRawDoesNotAllocate(t *testing.T) {
	l := newLoop("")
	p := jsonrpc.NewPeer(l, jsonrpc.Options{})
	stop := run(t, p)
	for _, size := range []int{100, 48 << 10} {
		msg := make([]byte, size)
		allocs := testing.AllocsPerRun(200, func() {
			must.Do(t, p.SendRaw(t.Context(), msg))
			<-l.sent
		})
		// sync.Pool may lose a chunk to the collector, or on purpose under
		// -race; AllocsPerRun rounds down.
		if allocs > 1 {
			t.Errorf("%v allocations for %d bytes, want at most 1", allocs, size)
		}
	}
	p.Close()
	close(l.let)
	_ = stop()
}

func TestErrorText(t *testing.T) {
	for _, tt := range []struct {
		err  *jsonrpc.Error
		want string
	}{
		{jsonrpc.Errorf(jsonrpc.CodeParse, "bad %s", "text"), "bad text (parse error)"},
		{&jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest}, "invalid request"},
		{&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams}, "invalid params"},
		{&jsonrpc.Error{Code: jsonrpc.CodeOverloaded}, "too many requests"},
		{&jsonrpc.Error{Code: -32001, Message: "gone"}, "gone (code -32001)"},
		{jsonrpc.MethodNotFound("m\x1b[31m"), `unknown method "m\x1b[31m" (method not found)`},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("%#v: %q, want %q", tt.err, got, tt.want)
		}
	}
}

func TestHugeErrorMessageIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := pair(t, func(_ context.Context, r *jsonrpc.Request) {
			_ = r.ReplyError(jsonrpc.Errorf(1, "x%s", bytes.Repeat([]byte("ü"), 10_000)))
		})
		err := client.Call(t.Context(), "x", nil, nil)
		e, ok := errors.AsType[*jsonrpc.Error](err)
		if !ok || len(e.Message) != 1023 {
			t.Errorf("Call = %.50v…, message of %d bytes, want 1023", err, len(e.Message))
		}
	})
}

func TestBrokenErrorDataIsLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := pair(t, func(_ context.Context, r *jsonrpc.Request) {
			_ = r.ReplyError(&jsonrpc.Error{Code: 1, Message: "m", Data: []byte("{")})
		})
		e, ok := errors.AsType[*jsonrpc.Error](client.Call(t.Context(), "x", nil, nil))
		if !ok || e.Code != 1 || e.Message != "m" || e.Data != nil {
			t.Errorf("Call = %+v", e)
		}
	})
}

const timeout = 5 * time.Second // fake, inside synctest bubbles

func rawParams(s string) json.RawMessage { return json.RawMessage(s) }
