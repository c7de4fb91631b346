package mcp_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"tether/agenttools"
	"tether/internal/testkit/must"
	"tether/mcp"
	"tether/vocab"
)

// eras are the versions of the protocol with and without sessions.
var eras = []string{"2025-06-18", "2025-11-25", "2026-07-28"}

// listen serves s on the loopback interface.
func listen(t *testing.T, s *mcp.Server) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(s)
	t.Cleanup(func() {
		s.Close()
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv
}

// connectHTTP opens a session with the SDK's own client.
func connectHTTP(t *testing.T, url, version string, o *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o)
	session, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: url, MaxRetries: -1}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("version %s: %v", version, err)
	}
	t.Cleanup(func() { session.Close() })
	return session
}

func TestHTTP(t *testing.T) {
	for _, version := range eras {
		t.Run(version, func(t *testing.T) {
			f := &fakeTerminals{}
			f.add("pty-abc123", agenttools.OwnerUser).print("hello\r\n")
			session := connectHTTP(t, listen(t, newServer(t, mcp.Options{Tools: toolsOver(f)})).URL, version, nil)
			if got := session.InitializeResult().ProtocolVersion; version < "2026" && got != version {
				t.Errorf("version %s was negotiated", got)
			}
			if r := read(t, session, m{"terminalId": "pty-abc123"}); r.History != "hello\n" {
				t.Errorf("read %+v", r)
			}
			answer(t, session, "spawn_background_terminal", m{"cwd": "/", "command": []string{"x"}})
			if got, _ := answer(t, session, "kill_terminal", m{"terminalId": "pty-xyz789"}); got != `{"terminated":true,"id":"pty-xyz789"}` {
				t.Errorf("kill: %s", got)
			}
			if got, isError := answer(t, session, "wait_terminal", m{"terminalId": "pty-abc123", "pattern": "hel+o"}); isError || !strings.Contains(got, `"reason":"pattern"`) {
				t.Errorf("wait: %s", got)
			}
		})
	}
}

// post sends a body and returns the status and the answer.
func post(t *testing.T, url, body string, header ...string) (int, http.Header, string) {
	t.Helper()
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body)))(t)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp := must.Get(http.DefaultClient.Do(req))(t)
	defer resp.Body.Close()
	text := must.Get(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, resp.Header, string(text)
}

// waitHTTP waits for the terminal pty-a in a session, with any result.
func waitHTTP(ctx context.Context, url, session string) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url,
		strings.NewReader(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait_terminal","arguments":{"terminalId":"pty-a","timeoutMs":600000}}}`))
	if err != nil {
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Mcp-Session-Id", session)
	if resp, err := http.DefaultClient.Do(req); err == nil {
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`

// A session of one principal does not exist for another principal, even one that knows
// its id.
func TestSessionsArePrincipals(t *testing.T) {
	f := &fakeTerminals{}
	a, b := listen(t, newServer(t, mcp.Options{Tools: toolsOver(f)})), listen(t, newServer(t, mcp.Options{Tools: toolsOver(&fakeTerminals{})}))
	status, header, _ := post(t, a.URL, initialize)
	id := header.Get("Mcp-Session-Id")
	if status != 200 || id == "" {
		t.Fatalf("status %d, session %q", status, id)
	}
	if status, _, _ := post(t, a.URL, listCall, "Mcp-Session-Id", id); status != 200 {
		t.Errorf("its own session: status %d", status)
	}
	if status, _, text := post(t, b.URL, listCall, "Mcp-Session-Id", id); status != 404 || strings.Contains(text, "terminals") {
		t.Errorf("another's session: status %d, %s", status, text)
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		req, _ := http.NewRequestWithContext(t.Context(), method, b.URL, nil)
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Mcp-Session-Id", id)
		if resp, err := http.DefaultClient.Do(req); err != nil || resp.StatusCode != 404 {
			t.Errorf("%s of another's session: %v, %v", method, resp, err)
		}
	}
}

func TestBadHTTP(t *testing.T) {
	srv := listen(t, newServer(t, mcp.Options{Tools: toolsOver(&fakeTerminals{}), Sessions: 3}))
	_, header, _ := post(t, srv.URL, initialize)
	id := header.Get("Mcp-Session-Id")
	for _, c := range []struct {
		name, body string
		header     []string
		want       int
	}{
		{"no JSON", "{bad", []string{"Mcp-Session-Id", id}, 400},
		{"half a character", `{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"\ud83d"}}`, []string{"Mcp-Session-Id", id}, 400},
		{"an argument that is not UTF-8", `{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"` + "a\xe9" + `"}}`, []string{"Mcp-Session-Id", id}, 400},
		{"half a character without a session", `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"x":"\ud83d"}}`, []string{"Mcp-Protocol-Version", "2026-07-28"}, 400},
		{"another kind of content", initialize, []string{"Content-Type", "text/plain"}, 415},
		{"no stream accepted", initialize, []string{"Accept", "application/json"}, 400},
		{"a session that does not exist", listCall, []string{"Mcp-Session-Id", "x"}, 404},
		{"a version that does not exist", initialize, []string{"Mcp-Protocol-Version", "1999-01-01"}, 400},
		{"a foreign host", initialize, []string{"X-Host", "evil.example"}, 403},
		{"10 MiB", `{"x":"` + strings.Repeat("x", 10<<20) + `"}`, []string{"Mcp-Session-Id", id}, 413},
	} {
		t.Run(c.name, func(t *testing.T) {
			url := srv.URL
			if c.header[0] == "X-Host" {
				req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(c.body))
				req.Host = c.header[1]
				resp, err := http.DefaultClient.Do(req)
				if err != nil || resp.StatusCode != c.want {
					t.Errorf("%v, %v; want %d", resp, err, c.want)
				}
				return
			}
			if status, _, text := post(t, url, c.body, c.header...); status != c.want {
				t.Errorf("status %d, want %d: %s", status, c.want, text)
			}
		})
	}
	if status, _, _ := post(t, srv.URL, listCall, "Mcp-Session-Id", id); status != 200 {
		t.Errorf("the session is gone: status %d", status)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodDelete, srv.URL, nil)
	req.Header.Set("Mcp-Session-Id", id)
	if resp, err := http.DefaultClient.Do(req); err != nil || resp.StatusCode != http.StatusNoContent {
		t.Errorf("delete: %v, %v", resp, err)
	}
	if status, _, _ := post(t, srv.URL, initialize); status != 200 {
		t.Errorf("a session in its place: status %d", status)
	}
}

// When a client drops the HTTP request of a wait, the wait ends, in versions of the
// protocol with and without sessions.
func TestVanishingHTTPClient(t *testing.T) {
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			f, x := withTerminal("pty-a")
			srv := listen(t, newServer(t, mcp.Options{Tools: toolsOver(f)}))
			_, header, _ := post(t, srv.URL, initialize)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			call := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait_terminal","arguments":{"terminalId":"pty-a","timeoutMs":600000},` +
				`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
			if version < "2026" {
				call = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait_terminal","arguments":{"terminalId":"pty-a","timeoutMs":600000}}}`
			}
			req, _ := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL, bytes.NewBufferString(call))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			req.Header.Set("Mcp-Protocol-Version", version)
			if version < "2026" {
				req.Header.Set("Mcp-Session-Id", header.Get("Mcp-Session-Id"))
			} else {
				req.Header.Set("Mcp-Method", "tools/call")
				req.Header.Set("Mcp-Name", "wait_terminal")
			}
			gone := make(chan string, 1)
			go func() {
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					gone <- err.Error()
					return
				}
				text, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				gone <- resp.Status + " " + string(text)
			}()
			eventually(t, "the wait reads", func() bool {
				select {
				case text := <-gone:
					t.Fatalf("the call ended: %s", text)
				default:
				}
				return x.open() == 1
			})
			cancel()
			eventually(t, "the wait is freed", func() bool { return x.open() == 0 })
		})
	}
}

// To make room for a new session, the server ends the session that was idle longest, but
// none with an open request or stream.
func TestSessionsMakeRoom(t *testing.T) {
	f, x := withTerminal("pty-a")
	s := newServer(t, mcp.Options{Tools: toolsOver(f), Sessions: 3})
	srv := listen(t, s)
	open := func() string {
		t.Helper()
		status, header, text := post(t, srv.URL, initialize)
		if status != 200 {
			t.Fatalf("status %d: %s", status, text)
		}
		return header.Get("Mcp-Session-Id")
	}
	works := func(id string) bool {
		status, _, _ := post(t, srv.URL, listCall, "Mcp-Session-Id", id)
		return status == 200
	}
	streaming, waiting, silent := open(), open(), open()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL, nil)
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Mcp-Session-Id", streaming)
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("stream: %v, %v", resp, err)
	}
	defer resp.Body.Close()
	go waitHTTP(t.Context(), srv.URL, waiting)
	eventually(t, "the wait reads", func() bool { return x.open() == 1 })
	if !works(silent) {
		t.Error("it is full, and the last session does not work")
	}
	fourth := open()
	if works(silent) || !works(streaming) || !works(fourth) {
		t.Error("not the silent session made room")
	}
	fifth := open()
	if works(fourth) || !works(fifth) {
		t.Error("not the session that was silent longest made room")
	}
	go waitHTTP(t.Context(), srv.URL, fifth)
	eventually(t, "both waits read", func() bool { return x.open() == 2 })
	if status, _, _ := post(t, srv.URL, initialize); status != http.StatusTooManyRequests {
		t.Errorf("all are used: status %d", status)
	}
	x.exit(vocab.Exit{})
	eventually(t, "there is room again", func() bool { status, _, _ := post(t, srv.URL, initialize); return status == 200 })
	cancel()
}

// A session that stays idle is ended.
func TestSessionIdle(t *testing.T) {
	s := newServer(t, mcp.Options{Tools: toolsOver(&fakeTerminals{}), SessionIdle: 50 * time.Millisecond})
	post(t, listen(t, s).URL, initialize)
	eventually(t, "the session is forgotten", s.Idle)
}

// Few clients over HTTP end their sessions. If a session that has subscribed to a
// terminal is idle for FollowIdle, it is ended and no longer counts as an observer. A
// session with an open stream stays.
func TestSilentSubscribersAreForgotten(t *testing.T) {
	f := &fakeTerminals{}
	gone, listening := f.add("pty-a", agenttools.OwnerUser), f.add("pty-b", agenttools.OwnerUser)
	url := listen(t, newServer(t, mcp.Options{Tools: toolsOver(f), FollowIdle: 50 * time.Millisecond})).URL
	subscribe := func(terminal string) (session string) {
		t.Helper()
		_, header, _ := post(t, url, initialize)
		session = header.Get("Mcp-Session-Id")
		if terminal == "pty-b" {
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
			req.Header.Set("Accept", "text/event-stream")
			req.Header.Set("Mcp-Session-Id", session)
			resp, err := http.DefaultClient.Do(req)
			if err != nil || resp.StatusCode != 200 {
				t.Fatalf("stream: %v, %v", resp, err)
			}
			t.Cleanup(func() { resp.Body.Close() })
		}
		body := `{"jsonrpc":"2.0","id":7,"method":"resources/subscribe","params":{"uri":"terminal:///` + terminal + `"}}`
		if status, _, text := post(t, url, body, "Mcp-Session-Id", session); status != 200 || strings.Contains(text, `"error"`) {
			t.Fatalf("subscribe: %d %s", status, text)
		}
		return session
	}
	stays := subscribe("pty-b")
	leaves := subscribe("pty-a")
	eventually(t, "who is silent watches no more", func() bool { return gone.open() == 0 })
	if status, _, _ := post(t, url, listCall, "Mcp-Session-Id", leaves); status != http.StatusNotFound {
		t.Errorf("the silent session answers %d, want 404: then a client begins anew", status)
	}
	if status, _, _ := post(t, url, listCall, "Mcp-Session-Id", stays); status != 200 || listening.open() != 1 {
		t.Errorf("the session that listens answers %d, and %d watch its terminal", status, listening.open())
	}
}

func TestResources(t *testing.T) {
	f, x := withTerminal("pty-a")
	x.info.Title = "dev server"
	x.print("\x1b[31mred\x1b[0m\r\n")
	f.add("pty-b", agenttools.OwnerAgent).exit(vocab.Exit{Code: 3})
	session := one(t, f)
	list := must.Get(session.ListResources(t.Context(), nil))(t)
	if len(list.Resources) != 2 || list.Resources[0].URI != "terminal:///pty-a" || list.Resources[0].Title != "dev server" || list.Resources[1].Description != "terminal of the agent, exited, in /project" {
		t.Errorf("resources %+v", list.Resources)
	}
	templates, err := session.ListResourceTemplates(t.Context(), nil)
	if err != nil || len(templates.ResourceTemplates) != 1 || templates.ResourceTemplates[0].URITemplate != "terminal:///{id}" {
		t.Errorf("templates %+v, %v", templates, err)
	}
	got, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "terminal:///pty-a"})
	if err != nil || got.Contents[0].Text != "red\n" || got.Contents[0].Meta["tether/untrusted"] != true {
		t.Errorf("read: %+v, %v", got, err)
	}
	got, err = session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "terminal:///pty-b"})
	if err != nil || got.Contents[0].Meta["tether/exitCode"] != 3.0 {
		t.Errorf("read what has exited without a word: %+v, %v", got, err)
	}
	for _, uri := range []string{"terminal:///pty-x", "terminal:///", "terminal:///pty-a/x", "terminal://pty-a", "file:///etc/passwd", "terminal:///pty-a?x", "terminal:///PTY-A"} {
		if got, err := session.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil || !strings.Contains(err.Error(), "Resource not found") {
			t.Errorf("%s: %+v, %v", uri, got, err)
		}
		if err := session.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}); err == nil {
			t.Errorf("%s can be subscribed to", uri)
		}
	}
}

func TestSubscribe(t *testing.T) {
	for _, over := range slices.Concat([]string{"lines"}, eras) {
		t.Run(over, func(t *testing.T) {
			f, x := withTerminal("pty-a")
			x.print("before\r\n")
			s := newServer(t, mcp.Options{Tools: toolsOver(f)})
			told := make(chan string, 100)
			o := &sdk.ClientOptions{ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) { told <- r.Params.URI }}
			var session *sdk.ClientSession
			if over == "lines" {
				session = connect(t, s, o)
			} else {
				session = connectHTTP(t, listen(t, s).URL, over, o)
			}
			const uri = "terminal:///pty-a"
			must.Do(t, session.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}))
			eventually(t, "it is watched", func() bool { return x.open() == 1 })
			hears := func(what string) {
				t.Helper()
				select {
				case got := <-told:
					if got != uri {
						t.Errorf("%s: told of %s", what, got)
					}
				case <-time.After(patience):
					t.Fatalf("%s: nothing was told", what)
				}
			}
			x.print("new\r\n")
			hears("output")
			began := time.Now()
			lines(x, 1000, "flood %d")
			hears("a flood")
			must.Do(t, session.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: uri}))
			eventually(t, "it is not watched any more", func() bool { return x.open() == 0 })
			if n, took := len(told), time.Since(began); n > 3+int(took/(250*time.Millisecond)) {
				t.Errorf("a flood of %v was told %d times more", took, n)
			}
			must.Do(t, session.Subscribe(t.Context(), &sdk.SubscribeParams{URI: uri}))
			eventually(t, "it is watched again", func() bool { return x.open() == 1 })
			for len(told) > 0 {
				<-told
			}
			x.exit(vocab.Exit{Code: 1})
			hears("the exit")
			eventually(t, "the watch has ended", func() bool { return x.open() == 0 })
		})
	}
}

// A session that ends leaves no watcher behind.
func TestSubscriptionEndsWithSession(t *testing.T) {
	f, x := withTerminal("pty-a")
	s := newServer(t, mcp.Options{Tools: toolsOver(f)})
	a, conn := dial(t, s, nil)
	b := connect(t, s, nil)
	for _, session := range []*sdk.ClientSession{a, b} {
		must.Do(t, session.Subscribe(t.Context(), &sdk.SubscribeParams{URI: "terminal:///pty-a"}))
	}
	if n := x.open(); n != 1 {
		t.Errorf("%d watches for two sessions", n)
	}
	conn.Close()
	eventually(t, "the first session has ended", func() bool { return !slices.Contains([]int{0}, x.open()) })
	must.Do(t, b.Unsubscribe(t.Context(), &sdk.UnsubscribeParams{URI: "terminal:///pty-a"}))
	eventually(t, "nothing is watched", func() bool { return x.open() == 0 })
}

// A session of an older version of the protocol can continue at any node. Calls are
// answered; a request that needs the session's state is refused with the reason.
func TestSessionsOfOtherNodes(t *testing.T) {
	f := &fakeTerminals{}
	a, b := listen(t, newServer(t, mcp.Options{Tools: toolsOver(f), Node: "nodea"})), listen(t, newServer(t, mcp.Options{Tools: toolsOver(f), Node: "nodeb"}))
	_, header, _ := post(t, a.URL, initialize)
	id := header.Get("Mcp-Session-Id")
	if !strings.HasPrefix(id, "nodea-") {
		t.Fatalf("the session is called %q", id)
	}
	for name, url := range map[string]string{"its node": a.URL, "another": b.URL} {
		if status, _, text := post(t, url, listCall, "Mcp-Session-Id", id); status != 200 || !strings.Contains(text, "terminals") {
			t.Errorf("at %s a call has status %d, %s", name, status, text)
		}
	}
	if status, _, text := post(t, b.URL, `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"terminal:///x"}}`, "Mcp-Session-Id", id); status != 200 || !strings.Contains(text, "begin a new session here") {
		t.Errorf("at another node a subscription has status %d, %s", status, text)
	}
	for method, want := range map[string]int{http.MethodGet: 405, http.MethodDelete: 204} {
		req, _ := http.NewRequestWithContext(t.Context(), method, b.URL, nil)
		req.Header.Set("Accept", "text/event-stream")
		req.Header.Set("Mcp-Session-Id", id)
		if resp, err := http.DefaultClient.Do(req); err != nil || resp.StatusCode != want {
			t.Errorf("%s at another node: %v, %v; want %d", method, resp, err, want)
		}
	}
	for _, unknown := range []string{"nodeb-X", "-X", strings.Repeat("n", 33) + "-X", "X"} {
		if status, _, _ := post(t, b.URL, listCall, "Mcp-Session-Id", unknown); status != 404 {
			t.Errorf("the session %.40q, which nobody has, is answered with status %d", unknown, status)
		}
	}
}
