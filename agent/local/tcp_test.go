package local_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

const listed = "https://ui.example"

// door is a world that is served on loopback TCP too.
type door struct {
	*world
	tokens *local.Tokens
	token  string // the person's
	addr   string
	port   string
}

func serveTCP(t *testing.T) *door { return serveTCPFor(t, listed) }

func serveTCPFor(t *testing.T, origin string) *door {
	t.Helper()
	tokens, err := local.OpenTokens(t.TempDir())
	must.Do(t, err)
	d := &door{world: serve(t, local.Options{Tokens: tokens, Origins: []string{origin}}, term.Options{}), tokens: tokens}
	l := must.Get(local.ListenLoopback("127.0.0.1:0"))(t)
	served := make(chan error, 1)
	go func() { served <- d.server.ServeTCP(l) }()
	t.Cleanup(func() {
		if err := d.server.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve TCP: %v", err)
		}
	})
	d.addr = l.Addr().String()
	_, d.port, _ = net.SplitHostPort(d.addr)
	if d.token, err = tokens.User(); err != nil {
		t.Fatal(err)
	}
	return d
}

// ask sends raw bytes, with PORT and TOKEN replaced, and returns the answer with its
// body.
func (d *door) ask(raw string) (*http.Response, string) {
	d.t.Helper()
	conn := must.Get(net.Dial("tcp", d.addr))(d.t)
	defer conn.Close()
	must.Do(d.t, conn.SetDeadline(time.Now().Add(patience)))
	must.Get(io.WriteString(conn, strings.NewReplacer("PORT", d.port, "TOKEN", d.token).Replace(raw)))(d.t)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		d.t.Fatalf("%q: %v", raw, err)
	}
	var body []byte
	if resp.StatusCode != http.StatusSwitchingProtocols {
		body, _ = io.ReadAll(resp.Body)
	}
	return resp, string(body)
}

const upgradeHeaders = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"

// A doorCase is a request and the status of its answer: a row of testdata/door.txt.
type doorCase struct {
	name, line, headers string
	status              int
}

func doorCases(t *testing.T) (all []doorCase) {
	t.Helper()
	for _, row := range testkit.Table(t, "door.txt", 4, 95) {
		status := must.Get(strconv.Atoi(row[0]))(t)
		headers := ""
		for _, h := range strings.Split(row[3], " | ") {
			if headers += h + "\r\n"; h == "UPGRADE" {
				headers = strings.TrimSuffix(headers, h+"\r\n") + upgradeHeaders
			}
		}
		all = append(all, doorCase{row[1], row[2], strings.ReplaceAll(headers, "LISTED", listed), status})
	}
	return all
}

func TestWhoIsLetInThroughTCP(t *testing.T) {
	d := serveTCP(t)
	d.spawn("one")
	for _, c := range doorCases(t) {
		resp, body := d.ask(c.line + " HTTP/1.1\r\n" + c.headers + "\r\n")
		if resp.StatusCode != c.status {
			t.Errorf("%s: %s %q, want %d", c.name, resp.Status, body, c.status)
		}
		if strings.Contains(body, d.token) || strings.Contains(fmt.Sprint(resp.Header), d.token) {
			t.Errorf("%s: the token is sent back: %v %q", c.name, resp.Header, body)
		}
		page := resp.Header.Get("Access-Control-Allow-Origin")
		if strings.Contains(c.headers, "Origin: "+listed+"\r\n") != (page == listed) && !strings.HasPrefix(c.name, "two") {
			t.Errorf("%s: allows the origin %q", c.name, page)
		}
		if resp.StatusCode >= 401 && (resp.Header.Get("X-Content-Type-Options") != "nosniff" || resp.Header.Get("Content-Security-Policy") == "") {
			t.Errorf("%s: headers %v", c.name, resp.Header)
		}
	}
	if got, err := d.client.List(t.Context()); err != nil || len(got.Terminals) != 1 {
		t.Errorf("afterwards: %+v, %v", got, err)
	}
}

func TestTCPIsNoWayToCredentials(t *testing.T) {
	d := serveTCP(t)
	for _, line := range []string{"GET /v1/tokens", "POST /v1/tokens", "DELETE /v1/tokens/a", "POST /v1/token"} {
		resp, body := d.ask(line + " HTTP/1.1\r\nHost: localhost:PORT\r\nAuthorization: Bearer TOKEN\r\nContent-Length: 0\r\n\r\n")
		if resp.StatusCode != http.StatusForbidden || !strings.Contains(body, "denied") {
			t.Errorf("%s: %s %s", line, resp.Status, body)
		}
	}
}

// dialTCP opens the WebSocket with a token.
func (d *door) dialTCP(token string) (*ui, error) {
	ctx, cancel := context.WithTimeout(d.t.Context(), patience)
	defer cancel()
	conn, resp, err := websocket.Dial(ctx, "ws://"+d.addr+"/pty",
		&websocket.DialOptions{Subprotocols: []string{"tether.pty.v1", "tether.token." + token}, HTTPHeader: http.Header{"Origin": {listed}}})
	if err != nil {
		if resp != nil {
			return nil, fmt.Errorf("%s", resp.Status)
		}
		return nil, err
	}
	if got := conn.Subprotocol(); got != "tether.pty.v1" {
		d.t.Errorf("subprotocol %q", got)
	}
	d.t.Cleanup(func() { conn.CloseNow() })
	return &ui{d.t, conn}, nil
}

func TestTokensNameAgents(t *testing.T) {
	d := serveTCP(t)
	ctx := t.Context()
	mine, _ := d.spawn("mine")
	made, err := d.client.CreateToken(ctx, "agent-1")
	if err != nil || !strings.HasPrefix(made.Token, "tether_") || len(made.Token) < 7+43 {
		t.Fatalf("%+v, %v", made, err)
	}
	_, err = d.client.CreateToken(ctx, "agent-1")
	wantCode(t, "again", err, localapi.CodeExists)
	for _, bad := range []string{"", "a b", "user", strings.Repeat("x", 65)} {
		_, err = d.client.CreateToken(ctx, bad)
		wantCode(t, "principal "+bad, err, localapi.CodeBadRequest)
	}
	_, err = d.client.As("x").CreateToken(ctx, "y")
	wantCode(t, "an agent makes tokens", err, localapi.CodeDenied)
	if l, err := d.client.Tokens(ctx); err != nil || len(l.Tokens) != 1 || l.Tokens[0].Principal != "agent-1" {
		t.Errorf("%+v, %v", l, err)
	}

	u := must.Get(d.dialTCP(made.Token))(t)
	u.ask("pty:attach", mine.ID)
	u.nextOf("pty:attached")
	u.ask("pty:input", mine.ID, "data", "x")
	if got := u.nextOf("pty:error"); got["code"] != "denied" {
		t.Errorf("an agent types: %v", got)
	}
	as := func(header string, want int) {
		t.Helper()
		resp, body := d.ask("GET /v1/status HTTP/1.1\r\nHost: localhost:PORT\r\nAuthorization: Bearer " + header + "\r\n\r\n")
		if resp.StatusCode != want {
			t.Errorf("%s %s, want %d", resp.Status, body, want)
		}
	}
	as(made.Token, 200)
	as(made.Token+"\r\nTether-Principal: agent-1", 200)
	as(made.Token+"\r\nTether-Principal: agent-2", 403)
	as("TOKEN\r\nTether-Principal: agent-2", 200)
	as("TOKEN\r\nTether-Principal: a b", 400)

	must.Do(t, d.client.RevokeToken(ctx, "agent-1"))
	if got := closed(t, u); got.Code != websocket.StatusPolicyViolation || got.Reason != local.ErrRevoked.Error() {
		t.Errorf("closed with %v", got)
	}
	as(made.Token, 401)
	wantCode(t, "revoke again", d.client.RevokeToken(ctx, "agent-1"), localapi.CodeNoToken)
}

// closed waits for the end of the connection.
func closed(t *testing.T, u *ui) websocket.CloseError {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		if _, _, err := u.conn.Read(ctx); err != nil {
			e, _ := err.(websocket.CloseError)
			if status := websocket.CloseStatus(err); status >= 0 {
				e.Code = status
			}
			if i := strings.LastIndex(err.Error(), "reason = "); i >= 0 {
				e.Reason = strings.Trim(err.Error()[i+len("reason = "):], `"`)
			}
			return e
		}
	}
}

// An agent on TCP is not our own proxy, whose word for the person's approval counts.
func TestAgentsOnTCPDoNotApproveThemselves(t *testing.T) {
	d := serveTCP(t)
	made := must.Get(d.client.CreateToken(t.Context(), "a"))(t)
	for _, extra := range []string{`"approved":"the person"`, `"door":"acp"`} {
		body := rooted(`{"command":["x"],"cwd":"/",` + extra + `}`)
		resp, text := d.ask(fmt.Sprintf("POST /v1/terminals HTTP/1.1\r\nHost: localhost:PORT\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", made.Token, len(body), body))
		if resp.StatusCode != http.StatusForbidden || !strings.Contains(text, "denied") {
			t.Errorf("%s: %s %s", extra, resp.Status, text)
		}
	}
}

func TestRenewedTokenEndsOldConnections(t *testing.T) {
	d := serveTCP(t)
	d.spawn("a")
	old := d.token
	u := must.Get(d.dialTCP(old))(t)
	attached, _, err := websocket.Dial(t.Context(), "ws://"+d.addr+"/v1/terminals/a/attach", &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + old}}})
	must.Do(t, err)
	defer attached.CloseNow()
	req, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+d.addr+"/v1/terminals/a/output?follow=1", nil)
	req.Header.Set("Authorization", "Bearer "+old)
	following := must.Get(http.DefaultTransport.RoundTrip(req))(t)
	defer following.Body.Close()
	must.Do(t, d.client.RevokeToken(t.Context(), "user"))
	closed(t, u)
	if _, data, err := attached.Read(t.Context()); err != nil || !strings.Contains(string(data), "revoked") {
		t.Errorf("attached: %s, %v", data, err)
	}
	if _, err := io.ReadAll(following.Body); err != nil {
		t.Errorf("following: %v", err)
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	if _, err := d.dialTCP(old); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("the old token: %v", err)
	}
	fresh, err := d.client.UserToken(t.Context())
	if err != nil || fresh.Token == old {
		t.Fatalf("%+v, %v", fresh, err)
	}
	if _, err := d.dialTCP(fresh.Token); err != nil {
		t.Errorf("the new token: %v", err)
	}
}

func TestListenOnLoopbackAlone(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.org:0", "127.0.0.1", "", "localhost.example:0", "127.0.0.2:0"} {
		if l, err := local.ListenLoopback(address); err == nil {
			l.Close()
			t.Errorf("%q was listened to", address)
		} else if !strings.Contains(err.Error(), "listen address") {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, address := range []string{"127.0.0.1:0", "localhost:0", "[::1]:0"} {
		l, err := local.ListenLoopback(address)
		if err != nil {
			if strings.HasPrefix(address, "[") {
				t.Logf("no version 6 here: %v", err)
				continue
			}
			t.Errorf("%q: %v", address, err)
			continue
		}
		l.Close()
	}
}

func TestTokensAreKeptClosed(t *testing.T) {
	testkit.Unix(t, testkit.Modes)
	dir := t.TempDir()
	tokens := must.Get(local.OpenTokens(dir))(t)
	user := must.Get(tokens.User())(t)
	token := must.Get(tokens.Create("a"))(t)
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, f := range files {
		i, err := f.Info()
		if err != nil || i.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", f.Name(), i.Mode(), err)
		}
		data, err := os.ReadFile(dir + "/" + f.Name())
		if err != nil || strings.Contains(string(data), token) {
			t.Errorf("%s holds an agent's token (%v)", f.Name(), err)
		}
	}
	again, err := local.OpenTokens(dir)
	if err != nil || len(again.List()) != 1 {
		t.Fatalf("%v", err)
	}
	if same, err := again.User(); err != nil || same != user {
		t.Errorf("the person's token is %q after a start, was %q (%v)", same, user, err)
	}
	if who := again.ActorOf(token); who != term.Agent("a") {
		t.Errorf("the agent's token is %v's", who)
	}
	for name, content := range map[string]string{"local.token": "short\n", "tokens.json": `{"version":9}`} {
		must.Do(t, os.WriteFile(dir+"/"+name, []byte(content), 0o600))
	}
	if _, err := again.User(); err == nil {
		t.Error("a broken token is taken")
	}
	if _, err := local.OpenTokens(dir); err == nil || !strings.Contains(err.Error(), "version 9") {
		t.Errorf("another version: %v", err)
	}
	must.Do(t, os.Chmod(dir+"/tokens.json", 0o644))
	if _, err := local.OpenTokens(dir); err == nil || !strings.Contains(err.Error(), "chmod") {
		t.Errorf("open to others: %v", err)
	}
}
