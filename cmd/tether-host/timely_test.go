package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc/wsconn"
)

// drip sends text one byte a second until the other end closes, and returns how long that
// took.
func drip(c net.Conn, text string) time.Duration {
	began := time.Now()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, c) // until it is closed
	}()
	for i := range len(text) {
		if _, err := c.Write([]byte{text[i]}); err != nil {
			break
		}
		<-time.After(time.Second)
	}
	select {
	case <-gone:
	case <-time.After(time.Hour): // it never would
	}
	took := time.Since(began)
	c.Close()
	<-gone
	return took
}

// Many simultaneous connections that are slow in every possible way are each given up in
// time, and a quick client gets in meanwhile.
func TestSlowHandshakesFromMany(t *testing.T) {
	header := "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + strings.Repeat("x", 500) + "\r\n\r\n"
	post := func(path string) string {
		return "POST " + path + " HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\nContent-Type: application/json\r\nContent-Length: 5000\r\n\r\n"
	}
	for _, test := range []struct {
		name        string
		once, drips string
		within      time.Duration
	}{
		{"nothing", "", "", headerTime},
		{"half a request", "GET / HTTP/1.1\r\nHost: loc", "", headerTime},
		{"a header drop by drop", "", header, headerTime + time.Second},
		{"a form that does not come", post("/login"), "", bodyTime},
		{"a form drop by drop", post("/login"), strings.Repeat("t", 5000), bodyTime + time.Second},
		{"a body that nobody wants", post("/"), "", bodyTime + time.Second},
		{"a message without a token", post("/mcp"), strings.Repeat(" ", 5000), bodyTime + time.Second},
		{"a question that goes no further", post("/device/v1/begin"), "{", bodyTime + time.Second},
		{"no other request", "GET /assets/plain.css HTTP/1.1\r\nHost: localhost\r\n\r\n", "", idleTime},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const many = 50
				url, l := servePipes(t, nil)
				var all sync.WaitGroup
				for range many {
					all.Go(func() {
						c := reach(t, l)
						if _, err := io.WriteString(c, test.once); err != nil {
							t.Error(err)
						}
						if took := drip(c, test.drips); took > test.within+time.Second {
							t.Errorf("it was kept for %v, want %v", took, test.within)
						}
					})
				}
				time.Sleep(time.Second)
				ch := must.Get(wsconn.Dial(t.Context(), url, wsconn.Options{DialContext: dialOf(l)}))(t)
				c := must.Get(client.ConnectChannel(t.Context(), ch, client.Options{ClientID: "quick"}))(t)
				all.Wait()
				if err := c.Ping(t.Context()); err != nil {
					t.Errorf("who was quick: %v", err)
				}
				c.Close()
			})
		})
	}
}

// A TLS handshake that does not come is given up as a header is.
func TestSlowTLSHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, l := servePipes(t, &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return nil, fmt.Errorf("nobody comes this far")
		}})
		for _, once := range []string{"", "\x16\x03\x01\x02"} {
			c := reach(t, l)
			must.Get(io.WriteString(c, once))(t)
			if took := drip(c, ""); took > headerTime+time.Second {
				t.Errorf("after %q it was kept for %v", once, took)
			}
		}
	})
}

// servePipes serves a host in memory until the test ends.
func servePipes(t *testing.T, secure *tls.Config) (url string, l *testkit.Pipes) {
	h := host.New(host.Options{Token: ""})
	l = testkit.NewPipes()
	server := newServer(h, 4096)
	listener := net.Listener(l)
	if secure != nil {
		listener = tls.NewListener(l, secure)
	}
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(listener) }() // until it is closed
	t.Cleanup(func() { h.Close(); server.Close(); <-served })
	return "ws://localhost/", l
}

// A connection that waits for an answer longer than a body may take is kept: the time of
// a body ends with it.
func TestAnAnswerMayTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := testkit.NewPipes()
		server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			select {
			case <-time.After(time.Hour):
			case <-r.Context().Done():
				err = r.Context().Err()
			}
			fmt.Fprintln(w, string(body), err)
		}), 4096)
		go func() { _ = server.Serve(l) }() // until it is closed
		defer server.Close()
		c := reach(t, l)
		defer c.Close()
		fmt.Fprint(c, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody")
		answer := must.Get(http.ReadResponse(bufio.NewReader(c), nil))(t)
		if text, err := io.ReadAll(answer.Body); string(text) != "body <nil>\n" || err != nil {
			t.Errorf("the answer is %q, %v", text, err)
		}
	})
}

// Silent connections, and requests without a token, leave nothing at a real host.
func TestHalfRequestsLeaveNothing(t *testing.T) {
	testkit.Leaks(t)
	r := start(t, "--token", ownToken, "--tokens", filepath.Join(t.TempDir(), "state", "tokens.json"))
	address := strings.TrimPrefix(r.url, "ws://")
	var all sync.WaitGroup
	for n := range 100 {
		all.Go(func() {
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			fmt.Fprint(c, []string{"", "GET", "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n", "\x00\xff\x16\x03\r\n\r\n"}[n%4])
		})
	}
	all.Wait()
	if _, err := connect(t, r, ownToken, client.Options{}); err != nil {
		t.Error(err)
	}
}

func dialOf(l *testkit.Pipes) func(context.Context, string, string) (net.Conn, error) {
	return func(context.Context, string, string) (net.Conn, error) { return l.Dial() }
}

// reach connects.
func reach(t *testing.T, l *testkit.Pipes) net.Conn {
	c, err := l.Dial()
	if err != nil { // nobody serves any more
		t.Error(err)
		c, _ = net.Pipe()
		c.Close()
	}
	return c
}
