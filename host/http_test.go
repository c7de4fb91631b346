package host_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc/wsconn"
)

const secret = "tkn-7c1f0c9b"

// serve listens on loopback and returns the URL for WebSockets.
func serve(t *testing.T, o host.Options) (h *host.Host, url string) {
	h = steadyHost(t, o)
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return h, "ws" + strings.TrimPrefix(s.URL, "http")
}

func dial(t *testing.T, url, id string, o viewOptions) *viewer {
	t.Helper()
	ch := must.Get(wsconn.Dial(t.Context(), url, wsconn.Options{ReadLimit: 16 << 20}))(t)
	v := newViewer(t, ch, id)
	t.Cleanup(v.close)
	if !o.noInit {
		v.initialize(o)
	}
	return v
}

func TestWhoMayConnect(t *testing.T) {
	testkit.Leaks(t)
	_, url := serve(t, host.Options{Token: secret, Origins: []string{"ide.example"}})
	own := strings.TrimPrefix(url, "ws://")
	bearer := func(s string) http.Header { return http.Header{"Authorization": {s}} }
	for _, test := range []struct {
		name, query string
		header      http.Header
		want        int // 101 is a WebSocket
	}{
		{"no token", "", nil, 401},
		{"token in the query", "?tkn=" + secret, nil, 101},
		{"on any path", "/a/b?tkn=" + secret, nil, 101},
		{"wrong token", "?tkn=wrong", nil, 403},
		{"token too long", "?tkn=" + secret + "x", nil, 403},
		{"empty token", "?tkn=", nil, 401},
		{"token twice", "?tkn=" + secret + "&tkn=" + secret, nil, 401},
		{"bearer", "", bearer("Bearer " + secret), 101},
		{"bearer in small letters", "", bearer("bearer " + secret), 101},
		{"wrong bearer", "", bearer("Bearer nonsense"), 403},
		{"basic", "", bearer("Basic " + secret), 401},
		{"foreign page", "?tkn=" + secret, http.Header{"Origin": {"https://evil.example"}}, 403},
		{"own page", "?tkn=" + secret, http.Header{"Origin": {"http://" + own}}, 101},
		{"allowed page", "?tkn=" + secret, http.Header{"Origin": {"https://ide.example"}}, 101},
		{"no page", "?tkn=" + secret, http.Header{"Origin": {"null"}}, 403},
		{"page of a rebound name", "?tkn=" + secret, http.Header{"Origin": {"http://evil.example"}, "Host": {"evil.example"}}, 403},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := upgrade(t, url+test.query, test.header, true); got != test.want {
				t.Errorf("status %d, want %d", got, test.want)
			}
		})
	}
	for query, want := range map[string]int{"": 401, "?tkn=x": 403, "?tkn=" + secret: 426} {
		if got := upgrade(t, url+query, nil, false); got != want {
			t.Errorf("plain GET %q: status %d, want %d", query, got, want)
		}
	}
}

// Where browsers come by https, somebody on the way can write a page under the host's own
// name that came by http. It gets in at no door; this machine's own pages do, if they are
// allowed.
func TestPagesThatCameByHTTP(t *testing.T) {
	for secure, want := range map[bool]int{true: 403, false: 101} {
		_, url := serve(t, host.Options{Token: secret, Secure: secure, Origins: []string{"host.example", "localhost:5173", "192.0.2.7"}})
		for origin, want := range map[string]int{"https://host.example": 101, "http://host.example": want, "HTTP://host.example": want, "http://192.0.2.7": want, "http://localhost:5173": 101} {
			header := http.Header{"Origin": {origin}, "Host": {"host.example"}}
			if got := upgrade(t, url+"?tkn="+secret, header, true); got != want {
				t.Errorf("https %t, %s: status %d, want %d", secure, origin, got, want)
			}
			if want == 101 {
				continue
			}
			for _, v := range []visit{{path: "/launch"}, {path: "/mcp", token: secret}, {method: "POST", path: "/login", form: "token=" + secret}, {method: "POST", path: "/s/open", form: "{}"}, {path: "/events", token: secret}} {
				v.origin, v.host = origin, "host.example"
				if r, _ := ask(t, url, v); r.StatusCode != want {
					t.Errorf("%s at %s: status %d", origin, v.path, r.StatusCode)
				}
			}
		}
	}
}

// upgrade makes a request, as a WebSocket's handshake or plain, and returns the status.
func upgrade(t *testing.T, url string, header http.Header, websocket bool) int {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), "GET", "http"+strings.TrimPrefix(url, "ws"), nil))(t)
	for k, v := range header {
		r.Header[k] = v
	}
	if name := header.Get("Host"); name != "" {
		r.Host = name
	}
	if websocket {
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", "websocket")
		r.Header.Set("Sec-WebSocket-Version", "13")
		r.Header.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
	}
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp := must.Get(transport.RoundTrip(r))(t)
	resp.Body.Close()
	return resp.StatusCode
}

func TestTooManyConnections(t *testing.T) {
	_, url := serve(t, host.Options{MaxConnections: 2})
	dial(t, url, "a", viewOptions{})
	b := dial(t, url, "b", viewOptions{})
	_, err := wsconn.Dial(t.Context(), url, wsconn.Options{})
	if e, ok := errors.AsType[*wsconn.DialError](err); !ok || e.Status != http.StatusServiceUnavailable {
		t.Errorf("the third connection: %v, want status 503", err)
	}
	b.close()
	testkit.Eventually(t, patience, "a place is free again", func() bool {
		ch, err := wsconn.Dial(t.Context(), url, wsconn.Options{})
		if err == nil {
			ch.Close()
		}
		return err == nil
	})
}

func TestBadFrames(t *testing.T) {
	testkit.Leaks(t)
	_, url := serve(t, host.Options{MaxFrame: 64 << 10})
	owner := dial(t, url, "laptop", viewOptions{})
	owner.create(uri)
	for _, test := range []struct {
		name, frame, want string // contained in the answer; "" for nothing
	}{
		{"not JSON", `hello`, `-32700`},
		{"not UTF-8", "\xff\xfe{", `-32700`},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, `-32600`},
		{"no method", `{"jsonrpc":"2.0","id":1}`, `-32600`},
		{"unknown method", `{"jsonrpc":"2.0","id":1,"method":"resourceList","params":{}}`, `-32601`},
		{"dispatchAction as a request", `{"jsonrpc":"2.0","id":1,"method":"dispatchAction","params":{}}`, `-32601`},
		{"initialize twice", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, `-32601`},
		{"subscribe to a number", `{"jsonrpc":"2.0","id":1,"method":"subscribe","params":{"channel":7}}`, `-32602`},
		{"subscribe to nothing", `{"jsonrpc":"2.0","id":1,"method":"subscribe"}`, `-32602`},
		{"subscribe to what is not there", `{"jsonrpc":"2.0","id":1,"method":"subscribe","params":{"channel":"ahp-terminal:/x"}}`, `-32008`},
		{"sessions", `{"jsonrpc":"2.0","id":1,"method":"listSessions","params":{"channel":"ahp-root://"}}`, `"items":[]`},
		{"deep nesting", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":` + strings.Repeat("[", 10000) + strings.Repeat("]", 10000) + `}}`, `-32700`},
		{"dispatch without anything", `{"jsonrpc":"2.0","method":"dispatchAction"}`, ""},
		{"dispatch of a number", `{"jsonrpc":"2.0","method":"dispatchAction","params":{"channel":"` + uri + `","action":5}}`, ""},
		{"output that is a number", `{"jsonrpc":"2.0","method":"dispatchAction","params":{"channel":"` + uri + `","action":{"type":"terminal/output","data":5}}}`, `"rejectionReason"`},
		{"half a character", `{"jsonrpc":"2.0","id":1,"method":"createTerminal","params":{"channel":"ahp-terminal:/y","name":"\ud83d"}}`, `-32602`},
		{"a name that is not UTF-8", `{"jsonrpc":"2.0","id":1,"method":"createTerminal","params":{"channel":"ahp-terminal:/y","name":"` + "a\xe9" + `"}}`, `-32602`},
		{"a title that is not UTF-8", `{"jsonrpc":"2.0","method":"dispatchAction","params":{"channel":"` + uri + `","clientSeq":1,"action":{"type":"terminal/titleChanged","title":"` + "a\xe9" + `"}}}`, ""},
		{"a title with half a character", `{"jsonrpc":"2.0","method":"dispatchAction","params":{"channel":"` + uri + `","clientSeq":1,"action":{"type":"terminal/titleChanged","title":"\ud83d"}}}`, ""},
		{"unknown notification", `{"jsonrpc":"2.0","method":"x/y"}`, ""},
		{"response to nothing", `{"jsonrpc":"2.0","id":99,"result":{}}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			ch := must.Get(wsconn.Dial(t.Context(), url, wsconn.Options{}))(t)
			defer ch.Close()
			answerTo := func(frame string) string {
				must.Do(t, ch.Send(t.Context(), []byte(frame)))
				msg := must.Get(ch.Recv(t.Context()))(t)
				return string(msg)
			}
			answerTo(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersions":["1.0.0"],"clientId":"bad"}}`)
			if test.want != "" {
				if got := answerTo(test.frame); !strings.Contains(got, test.want) {
					t.Errorf("answer %.200s, want %s in it", got, test.want)
				}
			} else if err := ch.Send(t.Context(), []byte(test.frame)); err != nil {
				t.Fatal(err)
			}
			// The connection goes on, and so does the host. An action that was read may
			// be refused before or after that.
			got := answerTo(`{"jsonrpc":"2.0","id":"p","method":"ping"}`)
			for strings.Contains(got, `"rejectionReason"`) {
				msg := must.Get(ch.Recv(t.Context()))(t)
				got = string(msg)
			}
			if got != `{"jsonrpc":"2.0","id":"p","result":null}` {
				t.Errorf("afterwards, ping is answered %s", got)
			}
		})
	}
	t.Run("oversized", func(t *testing.T) {
		v := dial(t, url, "big", viewOptions{})
		v.output(uri, strings.Repeat("x", 100<<10), -1)
		<-v.done
		if e, ok := errors.AsType[*wsconn.CloseError](v.peer.Err()); !ok || e.Code != wsconn.CloseTooBig {
			t.Errorf("closed with %v, want code 1009", v.peer.Err())
		}
	})
	owner.ping()
}

func TestBeforeTheHandshake(t *testing.T) {
	_, url := serve(t, host.Options{})
	v := dial(t, url, "early", viewOptions{noInit: true})
	v.ping()
	v.dispatch(uri, ahp.TerminalInput{Data: "x"})
	for _, method := range []string{ahp.MethodSubscribe, ahp.MethodCreateTerminal, ahp.MethodListSessions, "nonsense"} {
		if err := v.call(method, ahp.PingParams{Channel: ahp.RootURI}, nil); code(err) != -32601 {
			t.Errorf("%s before initialize: %v, want -32601", method, err)
		}
	}
	for _, test := range []struct {
		params string
		want   int64
	}{
		{`{"protocolVersions":["1.0.0"]}`, -32602},
		{`{"protocolVersions":["1.0.0"],"clientId":""}`, -32602},
		{`{"protocolVersions":["1.0.0"],"clientId":5}`, -32602},
		{`{"protocolVersions":["1.0"],"clientId":"a"}`, -32602},
		{`{"protocolVersions":[],"clientId":"a"}`, -32602},
		{`{"protocolVersions":["1.0.0"],"clientId":"a","channel":"ahp-session:/x"}`, -32602},
		{`{"protocolVersions":["1.0.0"],"clientId":"a\u0000"}`, -32602},
		{`{"protocolVersions":["2.0.0","0.1.0"],"clientId":"a"}`, ahp.CodeUnsupportedProtocolVersion},
	} {
		if err := v.call(ahp.MethodInitialize, jsonRaw(test.params), nil); code(err) != test.want {
			t.Errorf("initialize %s: %v, want code %d", test.params, err, test.want)
		}
	}
	<-v.done // after an offer of unknown versions
}

func TestReplacedConnectionGetsAMessage(t *testing.T) {
	_, url := serve(t, host.Options{})
	first := dial(t, url, "laptop", viewOptions{})
	second := dial(t, url, "laptop", viewOptions{})
	<-first.done
	if e, ok := errors.AsType[*wsconn.CloseError](first.peer.Err()); !ok || e.Code != 4000 || !strings.Contains(e.Reason, "newer connection") {
		t.Errorf("closed with %v, want code 4000 and that there is a newer connection", first.peer.Err())
	}
	second.ping()
}

func TestSilentConnectionIsClosed(t *testing.T) {
	_, url := serve(t, host.Options{HandshakeTime: 50 * time.Millisecond})
	v := dial(t, url, "silent", viewOptions{noInit: true})
	<-v.done
	if e, ok := errors.AsType[*wsconn.CloseError](v.peer.Err()); !ok || e.Code != wsconn.ClosePolicy {
		t.Errorf("closed with %v, want code 1008", v.peer.Err())
	}
}

func TestStalledSocketIsClosed(t *testing.T) {
	_, url := serve(t, host.Options{StallTime: time.Second})
	owner := dial(t, url, "laptop", viewOptions{resume: true})
	owner.create(uri)
	// A client whose socket is not read from.
	raw := must.Get(wsconn.Dial(t.Context(), url, wsconn.Options{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err == nil {
			err = c.(*net.TCPConn).SetReadBuffer(4 << 10)
		}
		return c, err
	}}))(t)
	defer raw.Close()
	must.Do(t, raw.Send(t.Context(), []byte(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersions":["1.0.0"],"clientId":"s","initialSubscriptions":["`+uri+`"]}}`)))
	sent := int64(0)
	text := strings.Repeat("x", 32<<10)
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		owner.output(uri, text, sent)
		sent += int64(len(text))
		owner.await("the acknowledgement", func() bool { return owner.acks[uri] == sent })
		if raw.Send(t.Context(), []byte(`{"jsonrpc":"2.0","method":"unsubscribe"}`)) != nil {
			return
		}
	}
	t.Errorf("a socket that is not read from stayed open for %v", patience)
}
