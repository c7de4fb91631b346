package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
	"tether/jsonrpc/wsconn"
)

const uri = "ahp-terminal:/1"

func TestInitialize(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, ch := newHost(t)
		var got ahp.InitializeParams
		h.serve(ahp.MethodInitialize, func(params []byte) (any, error) {
			return ahp.InitializeResult{ProtocolVersion: "0.9.0", ServerSeq: 3}, ahp.DecodeParams(params, &got)
		})
		c := connect(t, ch, client.Options{ClientID: "laptop", Info: ahp.Implementation{Name: "tether", Version: "1"},
			Meta: ahp.NewClientMeta(), Subscriptions: []string{ahp.RootURI}})
		want := ahp.InitializeParams{Channel: ahp.RootURI, ProtocolVersions: ahp.Versions(), ClientID: "laptop",
			ClientInfo: &ahp.Implementation{Name: "tether", Version: "1"}, InitialSubscriptions: []string{ahp.RootURI},
			Meta: ahp.NewClientMeta()}
		check.Equal(t, "params", want, got)
		if c.Version() != "0.9.0" || c.Result().ServerSeq != 3 {
			t.Errorf("version %q, result %+v", c.Version(), c.Result())
		}
		if _, ok := c.Resumed(); ok {
			t.Error("an initialized connection says that it was resumed")
		}
	})
}

func TestInitializeFails(t *testing.T) {
	tests := map[string]struct {
		prepare func(h *fakeHost)
		check   func(error) bool
	}{
		"no common version": {
			func(h *fakeHost) {
				h.fail(ahp.MethodInitialize, ahp.CodeUnsupportedProtocolVersion, json.RawMessage(`{"supportedVersions":["^3.0.0"]}`))
			},
			func(err error) bool {
				v, ok := errors.AsType[*ahp.VersionError](err)
				return ok && cmp.Equal(v.Supported, []string{"^3.0.0"}) && cmp.Equal(v.Offered, ahp.Versions())
			},
		},
		"no common version, without a list": {
			func(h *fakeHost) { h.fail(ahp.MethodInitialize, ahp.CodeUnsupportedProtocolVersion, nil) },
			func(err error) bool { _, ok := errors.AsType[*ahp.VersionError](err); return ok },
		},
		"a version nobody offered": {
			func(h *fakeHost) { h.answer(ahp.MethodInitialize, ahp.InitializeResult{ProtocolVersion: "3.0.0"}) },
			func(err error) bool {
				_, ok := errors.AsType[*ahp.VersionError](err)
				return ok && strings.Contains(err.Error(), `chose protocol version "3.0.0", which was not offered: 1.0.0, `)
			},
		},
		"another error": {
			func(h *fakeHost) { h.fail(ahp.MethodInitialize, ahp.CodePermissionDenied, nil) },
			func(err error) bool {
				e, ok := errors.AsType[*jsonrpc.Error](err)
				return ok && e.Code == ahp.CodePermissionDenied
			},
		},
		"the connection ends": {
			func(h *fakeHost) {
				h.serve(ahp.MethodInitialize, func([]byte) (any, error) { return nil, h.peer.Close() })
			},
			func(err error) bool { return errors.Is(err, jsonrpc.ErrClosed) },
		},
		"no answer": {
			func(h *fakeHost) {
				h.serve(ahp.MethodInitialize, func([]byte) (any, error) { <-h.peer.Done(); return nil, io.EOF })
			},
			func(err error) bool { return errors.Is(err, context.DeadlineExceeded) },
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, ch := newHost(t)
				tt.prepare(h)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := client.ConnectChannel(ctx, ch, client.Options{ClientID: "c"})
				if err == nil || !tt.check(err) {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// seen records callbacks as text.
type seen struct{ lines []string }

func (s *seen) options() client.Options {
	return client.Options{
		OnReady: func(c *client.Conn) { s.lines = append(s.lines, "ready "+c.Version()) },
		OnEnvelope: func(v ahp.EnvelopeView) {
			s.lines = append(s.lines, fmt.Sprintf("%d %s %s", v.ServerSeq, v.Kind, v.Data))
		},
		OnNotification: func(method string, params []byte) { s.lines = append(s.lines, method+" "+string(params)) },
		OnInvalid:      func(err error) { s.lines = append(s.lines, err.Error()) },
	}
}

func (s *seen) want(t *testing.T, lines ...string) {
	t.Helper()
	synctest.Wait()
	check.Equal(t, "callbacks", lines, s.lines)
}

func TestCallbacksInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, ch := newHost(t)
		h.serve(ahp.MethodInitialize, func([]byte) (any, error) {
			h.send(uri, 9, ahp.TerminalData{Data: "before the answer"}) // queued first
			return ahp.InitializeResult{ProtocolVersion: "1.0.0", ServerSeq: 9}, nil
		})
		var s seen
		connect(t, ch, s.options())
		h.send(uri, 10, ahp.TerminalData{Data: "a\n"})
		_ = h.peer.Notify(t.Context(), ahp.MethodAck, ahp.AckParams{Channel: uri, Applied: 5})
		_ = h.peer.Notify(t.Context(), ahp.MethodAction, json.RawMessage(`{"channel":"a:b"}`))
		h.send(uri, 11, ahp.TerminalExited{})
		s.want(t, "ready 1.0.0", `9 terminal/data "before the answer"`, `10 terminal/data "a\n"`,
			`x-tether/ack {"channel":"ahp-terminal:/1","applied":5}`, "action: serverSeq is missing", "11 terminal/exited ")
	})
}

func TestResume(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, ch := newHost(t)
		var got ahp.ReconnectParams
		h.serve(ahp.MethodReconnect, func(params []byte) (any, error) {
			h.send(uri, 44, ahp.TerminalData{Data: "live"}) // overtakes the answer
			return ahp.ReconnectResult{Type: ahp.ReconnectReplay, Missing: []string{"a:gone"}, Actions: []ahp.Envelope{
				{Channel: uri, ServerSeq: 42, Action: json.RawMessage(`{"type":"terminal/data","data":"x"}`)},
				{Channel: uri, ServerSeq: 43, Action: json.RawMessage(`{"type":"terminal/cleared"}`)},
			}}, ahp.DecodeParams(params, &got)
		})
		var s seen
		o := s.options()
		o.Resume = &client.Resume{Initial: ahp.InitializeResult{ProtocolVersion: "0.8.0"}, LastSeenServerSeq: 41, Subscriptions: []string{uri}}
		c := connect(t, ch, o)
		want := ahp.ReconnectParams{Channel: ahp.RootURI, ClientID: "viewer", LastSeenServerSeq: 41, Subscriptions: []string{uri}}
		check.Equal(t, "params", want, got)
		s.want(t, "ready 0.8.0", `42 terminal/data "x"`, "43 terminal/cleared ", `44 terminal/data "live"`)
		if r, ok := c.Resumed(); !ok || r.Missing[0] != "a:gone" {
			t.Errorf("resumed %v, %+v", ok, r)
		}
	})
}

func TestNotResumed(t *testing.T) {
	for _, code := range []jsonrpc.Code{ahp.CodeNotFound, jsonrpc.CodeMethodNotFound, ahp.CodeUnsupportedProtocolVersion} {
		synctest.Test(t, func(t *testing.T) {
			h, ch := newHost(t)
			h.fail(ahp.MethodReconnect, code, nil)
			_, err := client.ConnectChannel(t.Context(), ch, client.Options{ClientID: "c", Resume: &client.Resume{}})
			if !errors.Is(err, client.ErrNotResumed) {
				t.Errorf("code %v: %v, want ErrNotResumed", code, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		h, ch := newHost(t)
		h.answer(ahp.MethodReconnect, map[string]string{"type": "live"})
		_, err := client.ConnectChannel(t.Context(), ch, client.Options{ClientID: "c", Resume: &client.Resume{}})
		if err == nil || errors.Is(err, client.ErrNotResumed) {
			t.Errorf("an answer of unknown type: %v", err)
		}
	})
}

// The connection of a host that sends without end before it answers the handshake is
// closed.
func TestFloodBeforeTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, ch := newHost(t)
		h.serve(ahp.MethodInitialize, func([]byte) (any, error) {
			go func() {
				big := ahp.AppendData(nil, uri, 1, nil, []byte(`"`+strings.Repeat("x", 1<<19)+`"`))
				for h.peer.SendRaw(context.Background(), big) == nil {
				}
			}()
			<-h.peer.Done()
			return nil, io.EOF
		})
		_, err := client.ConnectChannel(t.Context(), ch, client.Options{ClientID: "c"})
		if !errors.Is(err, jsonrpc.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
	})
}

// Many small notifications are bounded, too.
func TestTinyFloodBeforeTheHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, ch := newHost(t)
		h.serve(ahp.MethodInitialize, func([]byte) (any, error) {
			for range 200_000 {
				if err := h.peer.SendRaw(context.Background(), []byte(`{"jsonrpc":"2.0","method":"x"}`)); err != nil {
					return nil, err
				}
			}
			return ahp.InitializeResult{ProtocolVersion: "1.0.0"}, h.peer.Flush(context.Background())
		})
		c, err := client.ConnectChannel(t.Context(), ch, client.Options{ClientID: "c"})
		if !errors.Is(err, jsonrpc.ErrClosed) {
			t.Errorf("got %v, want ErrClosed", err)
		}
		if c != nil {
			c.Close()
		}
	})
}

func TestCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, ch := newHost(t)
		c := connect(t, ch, client.Options{})
		s := snapshot(uri, 12, terminal("$ "))
		h.answer(ahp.MethodSubscribe, ahp.SubscribeResult{Snapshot: &s})
		h.answer(ahp.MethodListSessions, ahp.ListSessionsResult{Items: []ahp.SessionSummary{{Title: "T"}}})
		h.fail(ahp.MethodDisposeTerminal, ahp.CodeNotFound, nil)
		h.serve(ahp.MethodCreateTerminal, func(params []byte) (any, error) {
			return nil, ahp.DecodeParams(params, new(ahp.CreateTerminalParams))
		})
		ctx := t.Context()
		if r, err := c.Subscribe(ctx, uri); err != nil || r.Snapshot == nil || r.Snapshot.FromSeq != 12 {
			t.Errorf("Subscribe: %+v, %v", r, err)
		}
		if r, err := c.ListSessions(ctx, ahp.ListSessionsParams{}); err != nil || len(r.Items) != 1 {
			t.Errorf("ListSessions: %+v, %v", r, err)
		}
		if err := c.Ping(ctx); err != nil {
			t.Errorf("Ping: %v", err)
		}
		if err := c.CreateTerminal(ctx, ahp.CreateTerminalParams{Channel: uri, Claim: ahp.ClientClaim("viewer")}); err != nil {
			t.Errorf("CreateTerminal: %v", err)
		}
		if e, ok := errors.AsType[*jsonrpc.Error](c.DisposeTerminal(ctx, uri)); !ok || !ahp.IsGone(int64(e.Code)) {
			t.Errorf("DisposeTerminal of an unknown terminal: %v", e)
		}
		for want, a := range []ahp.Action{ahp.TerminalTitleChanged{Title: "t"}, ahp.TerminalExited{}} {
			if seq, err := c.Dispatch(ctx, uri, a); err != nil || seq != int64(want+1) {
				t.Errorf("Dispatch: %d, %v", seq, err)
			}
		}
		if err := c.Unsubscribe(ctx, uri); err != nil {
			t.Errorf("Unsubscribe: %v", err)
		}
		synctest.Wait()
		want := []ahp.DispatchParams{
			{Channel: uri, ClientSeq: 1, Action: json.RawMessage(`{"type":"terminal/titleChanged","title":"t"}`)},
			{Channel: uri, ClientSeq: 2, Action: json.RawMessage(`{"type":"terminal/exited"}`)},
		}
		check.Equal(t, "dispatched", want, h.dispatch)
	})
}

func TestRequestsOfTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, ch := newHost(t)
		connect(t, ch, client.Options{})
		err := h.peer.Call(t.Context(), "resourceRead", map[string]string{"channel": ahp.RootURI}, nil)
		if e, ok := errors.AsType[*jsonrpc.Error](err); !ok || e.Code != jsonrpc.CodeMethodNotFound {
			t.Errorf("by default: %v, want -32601", err)
		}
	})
}

func TestDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, ch := newHost(t)
		c := connect(t, ch, client.Options{})
		if err := c.Err(); err != nil {
			t.Errorf("a living connection has the error %v", err)
		}
		_ = h.peer.Close()
		<-c.Done()
		if err := c.Err(); !errors.Is(err, io.EOF) {
			t.Errorf("the host closed: %v, want io.EOF", err)
		}
		c.Close()
		c.Close()
	})
}

func TestConnect(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/forbidden":
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Query().Get("tkn") != "se cret&" || r.Header.Get("X-Extra") != "1":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/elsewhere":
			http.Redirect(w, r, "/", http.StatusFound)
		default:
			serveOne(t, w, r)
		}
	}))
	defer server.Close()
	base := "ws" + strings.TrimPrefix(server.URL, "http")
	header := http.Header{"X-Extra": {"1"}}
	good := client.Endpoint{URL: base + "/?a=b", Token: "se cret&", Header: header}
	c := must.Get(client.Connect(t.Context(), good, client.Options{ClientID: "c"}))(t)
	check.OK(t, c.Ping(t.Context()))
	c.Close()
	for name, tt := range map[string]struct {
		endpoint client.Endpoint
		want     error
	}{
		"wrong token": {client.Endpoint{URL: base, Token: "guess", Header: header}, client.ErrUnauthorized},
		"forbidden":   {client.Endpoint{URL: base + "/forbidden"}, client.ErrUnauthorized},
		"redirect":    {client.Endpoint{URL: base + "/elsewhere", Token: good.Token, Header: header}, client.ErrUnreachable},
		"dead port":   {client.Endpoint{URL: "ws://127.0.0.1:1/", Token: good.Token}, client.ErrUnreachable},
	} {
		_, err := client.Connect(t.Context(), tt.endpoint, client.Options{ClientID: "c"})
		if !errors.Is(err, tt.want) || strings.Contains(fmt.Sprint(err), "cret") || strings.Contains(fmt.Sprint(err), "guess") {
			t.Errorf("%s: %v, want %v and no token", name, err, tt.want)
		}
	}
	for _, bad := range []string{"", "http://x", "ws://", "localhost:80", "ws://user:secret@[::1", ":"} {
		_, err := client.Connect(t.Context(), client.Endpoint{URL: bad}, client.Options{ClientID: "c"})
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("URL %q: %v", bad, err)
		}
	}
}

// serveOne answers initialize and ping over a real WebSocket.
func serveOne(t *testing.T, w http.ResponseWriter, r *http.Request) {
	ch, err := wsconn.Accept(w, r, wsconn.Options{})
	if err != nil {
		t.Error(err)
		return
	}
	p := jsonrpc.NewPeer(ch, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(func(_ context.Context, r *jsonrpc.Request) {
		if r.Method == ahp.MethodInitialize {
			_ = r.Reply(ahp.InitializeResult{ProtocolVersion: "1.0.0"})
			return
		}
		_ = r.Reply(nil)
	})})
	_ = p.Run(context.Background())
}
