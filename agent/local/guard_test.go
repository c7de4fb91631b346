package local_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// ask sends raw bytes and returns the answer; nil if the connection was closed without
// one.
func ask(t *testing.T, w *world, raw string) *http.Response {
	t.Helper()
	conn := w.dial()
	if _, err := io.WriteString(conn, raw); err != nil && !strings.Contains(err.Error(), "broken pipe") {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil
	}
	return resp
}

func codeOf(t *testing.T, resp *http.Response) localapi.Code {
	t.Helper()
	var answer struct{ Error localapi.Error }
	body := must.Get(io.ReadAll(resp.Body))(t)
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatalf("%s: %q: %v", resp.Status, body, err)
	}
	if answer.Error.Message == "" {
		t.Errorf("%s without a message: %q", resp.Status, body)
	}
	return answer.Error.Code
}

func TestWhoIsLetIn(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	w.spawn("one")
	const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
	for _, c := range []struct {
		name, raw string
		status    int
		code      localapi.Code
	}{
		{"our own", "GET /v1/status HTTP/1.1\r\nHost: tether\r\n\r\n", 200, ""},
		{"localhost", "GET /v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n", 403, localapi.CodeForbidden},
		{"a rebound name", "GET /v1/terminals HTTP/1.1\r\nHost: attacker.example\r\n\r\n", 403, localapi.CodeForbidden},
		{"our name with a port", "GET /v1/status HTTP/1.1\r\nHost: tether:80\r\n\r\n", 403, localapi.CodeForbidden},
		{"no host", "GET /v1/status HTTP/1.0\r\n\r\n", 403, localapi.CodeForbidden},
		{"absolute form", "GET http://attacker.example/v1/status HTTP/1.1\r\nHost: tether\r\n\r\n", 403, localapi.CodeForbidden},
		{"a page", "POST /v1/shutdown HTTP/1.1\r\nHost: tether\r\nOrigin: https://attacker.example\r\nContent-Length: 0\r\n\r\n", 403, localapi.CodeForbidden},
		{"a page of the same name", "GET /v1/status HTTP/1.1\r\nHost: tether\r\nOrigin: http://tether\r\n\r\n", 403, localapi.CodeForbidden},
		{"a page without an origin", "GET /v1/status HTTP/1.1\r\nHost: tether\r\nOrigin: null\r\n\r\n", 403, localapi.CodeForbidden},
		{"an empty origin", "GET /v1/status HTTP/1.1\r\nHost: tether\r\nOrigin:\r\n\r\n", 403, localapi.CodeForbidden},
		{"an image of a page", "GET /v1/status HTTP/1.1\r\nHost: tether\r\nSec-Fetch-Site: cross-site\r\n\r\n", 403, localapi.CodeForbidden},
		{"a page's WebSocket", "GET /v1/terminals/one/attach HTTP/1.1\r\nHost: tether\r\nOrigin: http://tether\r\n" + upgrade + "\r\n", 403, localapi.CodeForbidden},
		{"a rebound WebSocket", "GET /v1/terminals/one/attach HTTP/1.1\r\nHost: attacker.example\r\nOrigin: http://attacker.example\r\n" + upgrade + "\r\n", 403, localapi.CodeForbidden},
		{"attach without upgrade", "GET /v1/terminals/one/attach HTTP/1.1\r\nHost: tether\r\n\r\n", 426, ""},
		{"a change by GET", "GET /v1/shutdown HTTP/1.1\r\nHost: tether\r\n\r\n", 404, localapi.CodeNotFound},
		{"a kill by GET", "GET /v1/terminals/one/kill HTTP/1.1\r\nHost: tether\r\n\r\n", 404, localapi.CodeNotFound},
		{"another version", "GET /v2/status HTTP/1.1\r\nHost: tether\r\n\r\n", 404, localapi.CodeNotFound},
		{"a large header", "GET /v1/status HTTP/1.1\r\nHost: tether\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", 431, ""},
		{"garbage", "\x00\x01\x02\xff\r\n\r\n", 400, ""},
		{"a TLS handshake", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, ""},
	} {
		resp := ask(t, w, c.raw)
		if resp == nil {
			t.Errorf("%s: no answer, want %d", c.name, c.status)
			continue
		}
		if resp.StatusCode != c.status {
			t.Errorf("%s: %s, want %d", c.name, resp.Status, c.status)
		}
		if c.code != "" {
			if got := codeOf(t, resp); got != c.code {
				t.Errorf("%s: %s, want %s", c.name, got, c.code)
			}
		}
	}
	if len(w.daemon.asked) > 0 {
		t.Errorf("the daemon was asked %q", w.daemon.asked)
	}
	if l, err := w.client.List(t.Context()); err != nil || len(l.Terminals) != 1 || l.Terminals[0].Exit != nil {
		t.Errorf("afterwards: %+v, %v", l, err)
	}
}

func TestBodies(t *testing.T) {
	w := serve(t, local.Options{}, term.Options{})
	good := `{"command":["x"],"cwd":"/","env":[]}`
	for _, c := range []struct {
		name, body string
		code       localapi.Code
	}{
		{"good", good, ""},
		{"empty", ``, localapi.CodeBadRequest},
		{"not JSON", `{"command":`, localapi.CodeBadRequest},
		{"another kind", `["x"]`, localapi.CodeBadRequest},
		{"unknown field", `{"command":["x"],"cwd":"/","colour":1}`, localapi.CodeBadRequest},
		{"two values", good + good, localapi.CodeBadRequest},
		{"wrong type", `{"command":"x","cwd":"/"}`, localapi.CodeBadRequest},
		{"large size", `{"command":["x"],"cwd":"/","cols":70000,"rows":1}`, localapi.CodeBadRequest},
		{"larger than a screen", `{"command":["x"],"cwd":"/","cols":1001,"rows":1}`, localapi.CodeBadRequest},
		{"half a size", `{"command":["x"],"cwd":"/","cols":80}`, localapi.CodeBadRequest},
		{"negative size", `{"command":["x"],"cwd":"/","cols":-1,"rows":24}`, localapi.CodeBadRequest},
		{"no command", `{"command":[],"cwd":"/"}`, localapi.CodeBadRequest},
		{"relative directory", `{"command":["x"],"cwd":"."}`, localapi.CodeBadRequest},
		{"long name", `{"command":["x"],"cwd":"/","name":"` + strings.Repeat("n", 300) + `"}`, localapi.CodeBadRequest},
		{"missing program", `{"command":["missing"],"cwd":"/"}`, localapi.CodeCannotStart},
		{"deep", strings.Repeat("[", 20_000), localapi.CodeBadRequest},
		{"oversized", `{"name":"` + strings.Repeat("n", localapi.MaxUserBody) + `"}`, localapi.CodeTooLarge},
		{"an agent's, oversized", `{"name":"` + strings.Repeat("n", localapi.MaxBody) + `"}`, localapi.CodeTooLarge},
	} {
		as := ""
		if strings.HasPrefix(c.name, "an agent's") {
			as = localapi.PrincipalHeader + ": a\r\n"
		}
		raw := fmt.Sprintf("POST /v1/terminals HTTP/1.1\r\nHost: tether\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", as, len(rooted(c.body)), rooted(c.body))
		resp := ask(t, w, raw)
		if resp == nil {
			t.Errorf("%s: no answer", c.name)
			continue
		}
		if c.code == "" {
			if resp.StatusCode != http.StatusOK {
				t.Errorf("%s: %s", c.name, resp.Status)
			}
			continue
		}
		if got := codeOf(t, resp); got != c.code {
			t.Errorf("%s: %s, want %s", c.name, got, c.code)
		}
	}
	if l, err := w.client.List(t.Context()); err != nil || len(l.Terminals) != 1 {
		t.Errorf("afterwards there are %d terminals (%v), want the good one", len(l.Terminals), err)
	}
}

// A body that is not what its headers say is the client's fault, whatever reads it.
func TestMalformedChunks(t *testing.T) {
	server := httptest.NewServer(local.Guarded(func(r *http.Request) error { _, err := io.ReadAll(r.Body); return err }))
	defer server.Close()
	conn := must.Get(net.Dial("tcp", server.Listener.Addr().String()))(t)
	defer conn.Close()
	must.Get(io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"))(t)
	resp := must.Get(http.ReadResponse(bufio.NewReader(conn), nil))(t)
	if got := codeOf(t, resp); got != localapi.CodeBadRequest {
		t.Errorf("%s, want %s", got, localapi.CodeBadRequest)
	}
}

func FuzzBody(f *testing.F) {
	f.Add([]byte(`{"command":["x"],"cwd":"/"}`))
	f.Add([]byte(`{"command":["x"],"cwd":"/"} {}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var req localapi.SpawnRequest
		err := local.DecodeBody(body, &req)
		var strict localapi.SpawnRequest
		d := json.NewDecoder(bytes.NewReader(body))
		d.DisallowUnknownFields()
		want := d.Decode(&strict) == nil && !d.More()
		if want {
			_, tokenErr := d.Token()
			want = tokenErr == io.EOF
		}
		if (err == nil) != want {
			t.Errorf("%q: %v, accepted should be %t", body, err, want)
		}
	})
}

// pipes is a port to which the test connects by pipes, whose deadlines are in the time of
// a bubble.
type pipes struct{ *testkit.Pipes }

func (p pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1234} }

// Who announces a body and does not send it holds a connection for a moment, not for
// ever, also without a token: the others could not come in any more.
func TestABodyThatDoesNotCome(t *testing.T) {
	const auth = "Authorization: Bearer TOKEN\r\n"
	for name, c := range map[string]struct {
		auth string
		size int
		want string
	}{
		"from anybody":            {"", 100, "HTTP/1.1 401 "},
		"from who has the token":  {auth, 100, "HTTP/1.1 400 "},
		"that would be too large": {auth, localapi.MaxUserBody + 1, "HTTP/1.1 413 "},
	} {
		t.Run(name, func(t *testing.T) {
			tokens := must.Get(local.OpenTokens(t.TempDir()))(t)
			token := must.Get(tokens.User())(t)
			synctest.Test(t, func(t *testing.T) {
				server := local.NewServer(local.Options{Access: term.NewPool(term.Options{}).As, Daemon: &fakeDaemon{}, Tokens: tokens})
				port := pipes{testkit.NewPipes()}
				served := make(chan error, 1)
				go func() { served <- server.ServeTCP(port) }()
				here := must.Get(port.Dial())(t)
				defer here.Close()
				must.Do(t, here.SetDeadline(time.Now().Add(time.Minute)))
				request := "POST /v1/terminals HTTP/1.1\r\nHost: 127.0.0.1:1234\r\n" + c.auth + "Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(c.size) + "\r\n\r\n{"
				must.Get(io.WriteString(here, strings.ReplaceAll(request, "TOKEN", token)))(t)
				answer, err := io.ReadAll(here)
				if err != nil || !strings.HasPrefix(string(answer), c.want) {
					t.Errorf("%.40q, %v; want %q and the end of the connection", answer, err, c.want)
				}
				check.OK(t, server.Close())
				check.OK(t, <-served)
			})
		})
	}
}
