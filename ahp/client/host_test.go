package client_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// fakeHost is the other end of one connection. Its methods may be called by the test's
// goroutine while it serves.
type fakeHost struct {
	t    testing.TB
	peer *jsonrpc.Peer
	done chan struct{} // closed when it has ended

	mu       sync.Mutex
	answers  map[string]func(params []byte) (any, error)
	received []string // methods, in order
	dispatch []ahp.DispatchParams
}

// newHost serves one end of a pipe and returns the other.
func newHost(t testing.TB) (*fakeHost, jsonrpc.Channel) {
	near, far := testkit.Channels()
	h := &fakeHost{t: t, done: make(chan struct{}), answers: map[string]func([]byte) (any, error){}}
	h.answer(ahp.MethodPing, nil)
	h.answer(ahp.MethodInitialize, ahp.InitializeResult{ProtocolVersion: "1.0.0", ServerSeq: 10})
	h.peer = jsonrpc.NewPeer(near, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(h.handle)})
	go func() {
		defer close(h.done)
		_ = h.peer.Run(context.Background())
	}()
	t.Cleanup(func() {
		_ = h.peer.Close()
		<-h.done
	})
	return h, far
}

func (h *fakeHost) answer(method string, result any) {
	h.serve(method, func([]byte) (any, error) { return result, nil })
}

func (h *fakeHost) fail(method string, code jsonrpc.Code, data json.RawMessage) {
	h.serve(method, func([]byte) (any, error) {
		return nil, &jsonrpc.Error{Code: code, Message: "no", Data: data}
	})
}

func (h *fakeHost) serve(method string, f func(params []byte) (any, error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers[method] = f
}

func (h *fakeHost) handle(_ context.Context, r *jsonrpc.Request) {
	h.mu.Lock()
	h.received = append(h.received, r.Method)
	if r.Method == ahp.MethodDispatchAction {
		var p ahp.DispatchParams
		if err := ahp.DecodeParams(r.Params, &p); err != nil {
			h.t.Errorf("dispatchAction: %v", err)
		}
		h.dispatch = append(h.dispatch, p)
	}
	answer := h.answers[r.Method]
	h.mu.Unlock()
	if r.IsNotification() {
		return
	}
	if answer == nil {
		_ = r.ReplyError(jsonrpc.MethodNotFound(r.Method))
		return
	}
	result, err := answer(r.Params)
	if err != nil {
		_ = r.ReplyError(err)
		return
	}
	_ = r.Reply(result)
}

// methods returns the received methods, without pings.
func (h *fakeHost) methods() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := []string{}
	for _, m := range h.received {
		if m != ahp.MethodPing {
			out = append(out, m)
		}
	}
	return out
}

// send notifies the client of an accepted action.
func (h *fakeHost) send(channel string, seq int64, a ahp.Action) {
	h.sendEnvelope(ahp.Envelope{Channel: channel, ServerSeq: seq, Action: ahp.AppendAction(nil, a)})
}

func (h *fakeHost) sendEnvelope(e ahp.Envelope) {
	h.t.Helper()
	if err := h.peer.Notify(context.Background(), ahp.MethodAction, e); err != nil {
		h.t.Errorf("send an envelope: %v", err)
	}
}

func connect(t testing.TB, ch jsonrpc.Channel, o client.Options) *client.Conn {
	t.Helper()
	if o.ClientID == "" {
		o.ClientID = "viewer"
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := must.Get(client.ConnectChannel(ctx, ch, o))(t)
	t.Cleanup(c.Close)
	return c
}

func terminal(text string) ahp.TerminalState {
	s := ahp.TerminalState{Title: "zsh", Claim: ahp.ClientClaim("laptop")}
	if text != "" {
		s.Content = []ahp.ContentPart{{Type: ahp.PartUnclassified, Value: text}}
	}
	return s
}

func snapshot(uri string, seq int64, state interface{ MarshalFor(string) []byte }) ahp.Snapshot {
	return ahp.Snapshot{Resource: uri, FromSeq: seq, State: state.MarshalFor("1.0.0")}
}
