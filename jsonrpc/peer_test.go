package jsonrpc_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"testing/synctest"

	"tether/internal/jsonspan"
	"tether/internal/testkit"
	"tether/jsonrpc"
)

// run starts p and returns a function that ends it and waits.
func run(t *testing.T, p *jsonrpc.Peer) (stop func() error) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(t.Context()) }()
	return func() error {
		p.Close()
		return <-ended
	}
}

// pair returns two running peers; h serves the second.
func pair(t *testing.T, h jsonrpc.HandlerFunc) (client, server *jsonrpc.Peer) {
	t.Helper()
	a, b := testkit.Channels()
	client = jsonrpc.NewPeer(a, jsonrpc.Options{})
	server = jsonrpc.NewPeer(b, jsonrpc.Options{Handler: h})
	stopClient, stopServer := run(t, client), run(t, server)
	t.Cleanup(func() {
		_ = stopClient()
		_ = stopServer()
	})
	return client, server
}

// decode decodes the parameters of a request.
func decode(r *jsonrpc.Request, params any) error {
	if r.Params == nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "params are missing")
	}
	if err := jsonspan.Unmarshal(r.Params, params); err != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%v", err)
	}
	return nil
}

func TestCall(t *testing.T) {
	client, _ := pair(t, func(_ context.Context, r *jsonrpc.Request) {
		var params struct{ A, B int }
		switch r.Method {
		case "add":
			if err := decode(r, &params); err != nil {
				_ = r.ReplyError(err)
				return
			}
			_ = r.Reply(params.A + params.B)
		case "fail":
			_ = r.ReplyError(errors.New("open /home/someone/secret: denied"))
		default:
			_ = r.ReplyError(jsonrpc.MethodNotFound(r.Method))
		}
	})
	ctx := t.Context()

	var sum int
	if err := client.Call(ctx, "add", map[string]int{"a": 2, "b": 3}, &sum); err != nil || sum != 5 {
		t.Errorf("add = %d, %v, want 5", sum, err)
	}
	var raw json.RawMessage
	if err := client.Call(ctx, "add", json.RawMessage(`{"a":1,"b":1}`), &raw); err != nil || string(raw) != "2" {
		t.Errorf("add = %s, %v, want 2", raw, err)
	}
	for _, tt := range []struct {
		method  string
		params  any
		code    jsonrpc.Code
		message string
	}{
		{"add", []int{1}, jsonrpc.CodeInvalidParams, "json: cannot unmarshal array into Go value of type struct { A int; B int }"},
		{"add", nil, jsonrpc.CodeInvalidParams, "params are missing"},
		{"fail", nil, jsonrpc.CodeInternal, "internal error"},
		{"no such", nil, jsonrpc.CodeMethodNotFound, `unknown method "no such"`},
	} {
		err := client.Call(ctx, tt.method, tt.params, nil)
		e, ok := errors.AsType[*jsonrpc.Error](err)
		if !ok || e.Code != tt.code || e.Message != tt.message {
			t.Errorf("Call(%q, %v) = %v, want %v: %s", tt.method, tt.params, err, tt.code, tt.message)
		}
	}
}

func TestCallEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held *jsonrpc.Request
		client, server := pair(t, func(_ context.Context, r *jsonrpc.Request) {
			if r.Method == "hold" {
				held = r
				return
			}
			_ = r.Reply("fine")
		})
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		if err := client.Call(ctx, "hold", nil, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Call = %v, want %v", err, context.DeadlineExceeded)
		}
		if got := client.Stats().Calls; got != 0 {
			t.Errorf("%d calls are still registered", got)
		}
		if got := server.Stats().Requests; got != 1 {
			t.Errorf("%d requests wait for a reply, want 1", got)
		}
		// The late response is ignored and the connection is good.
		if err := held.Reply("late"); err != nil {
			t.Errorf("Reply: %v", err)
		}
		if err := held.Reply("again"); !errors.Is(err, jsonrpc.ErrReplied) {
			t.Errorf("second Reply = %v, want %v", err, jsonrpc.ErrReplied)
		}
		var got string
		if err := client.Call(t.Context(), "other", nil, &got); err != nil || got != "fine" {
			t.Errorf("Call = %q, %v", got, err)
		}
	})
}

func TestEndReleasesEveryone(t *testing.T) {
	tests := []struct {
		name string
		end  func(client, server *jsonrpc.Peer, cancel context.CancelFunc)
		want error // of Run; the calls wrap it too, unless a write failed first
	}{
		{"close", func(c, _ *jsonrpc.Peer, _ context.CancelFunc) { c.Close() }, jsonrpc.ErrClosed},
		{"close with reason", func(c, _ *jsonrpc.Peer, _ context.CancelFunc) { _ = c.CloseReason(1000, "bye") }, jsonrpc.ErrClosed},
		{"other side closes", func(_, s *jsonrpc.Peer, _ context.CancelFunc) { s.Close() }, io.EOF},
		{"context", func(_, _ *jsonrpc.Peer, cancel context.CancelFunc) { cancel() }, context.Canceled},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b := testkit.Channels()
				client := jsonrpc.NewPeer(a, jsonrpc.Options{QueueBytes: 1})
				server := jsonrpc.NewPeer(b, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(
					func(ctx context.Context, _ *jsonrpc.Request) { <-ctx.Done() }, // reads no more
				)})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended, serverEnded := make(chan error, 1), make(chan error, 1)
				go func() { ended <- client.Run(ctx) }()
				go func() { serverEnded <- server.Run(t.Context()) }()

				calls := make(chan error, 8)
				for range 2 {
					go func() { calls <- client.Call(t.Context(), "hang", nil, nil) }()
				}
				synctest.Wait()
				for range 6 {
					go func() {
						for {
							if err := client.SendRaw(t.Context(), []byte(`{}`)); err != nil {
								calls <- err
								return
							}
						}
					}()
				}
				synctest.Wait()
				if got := client.Stats(); got.Calls != 2 || len(calls) != 0 {
					t.Fatalf("%d calls and senders returned early: %+v", len(calls), got)
				}

				tt.end(client, server, cancel)
				if err := <-ended; !errors.Is(err, tt.want) {
					t.Errorf("Run = %v, want %v", err, tt.want)
				}
				for range cap(calls) {
					if err := <-calls; !errors.Is(err, jsonrpc.ErrClosed) || !errors.Is(err, tt.want) && !errors.Is(err, io.ErrClosedPipe) {
						t.Errorf("Call or SendRaw = %v, want %v and %v", err, jsonrpc.ErrClosed, tt.want)
					}
				}
				for name, err := range map[string]error{
					"Call":    client.Call(t.Context(), "x", nil, nil),
					"Notify":  client.Notify(t.Context(), "x", nil),
					"SendRaw": client.SendRaw(t.Context(), []byte(`{}`)),
					"Flush":   client.Flush(t.Context()),
				} {
					if !errors.Is(err, jsonrpc.ErrClosed) {
						t.Errorf("%s after the end = %v, want %v", name, err, jsonrpc.ErrClosed)
					}
				}
				<-client.Done()
				if client.Err() == nil {
					t.Error("Err = nil after the end")
				}
				server.Close()
				<-serverEnded // synctest fails if a goroutine is left
			})
		})
	}
}
