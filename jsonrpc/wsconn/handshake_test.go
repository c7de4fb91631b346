package wsconn_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/jsonrpc/wsconn"
	"tether/platform/rawio"
)

const secret = "tkn=s3cr3t"

func TestDialRefused(t *testing.T) {
	elsewhere, accepted := serve(t, wsconn.Options{})
	tests := []struct {
		name    string
		handler http.HandlerFunc
		status  int    // of the DialError; 0: another error
		text    string // of the error
	}{
		{"unauthorized", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, 401,
			"wsconn: the server refused the WebSocket: 401 Unauthorized"},
		{"forbidden", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "<b>no</b>", http.StatusForbidden) }, 403,
			"wsconn: the server refused the WebSocket: 403 Forbidden"},
		{"no WebSocket", func(http.ResponseWriter, *http.Request) {}, 200,
			"wsconn: the server refused the WebSocket: 200 OK"},
		{"redirect is not followed", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http"+strings.TrimPrefix(elsewhere, "ws"), http.StatusTemporaryRedirect)
		}, 307, "wsconn: the server refused the WebSocket: 307 Temporary Redirect"},
		{"wrong upgrade", func(w http.ResponseWriter, _ *http.Request) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: nonsense\r\n\r\n")
			c.Close()
		}, 0, "wsconn: dial: "},
		{"hangs up", func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, 0,
			"wsconn: dial: EOF"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := httptest.NewServer(tt.handler)
			defer s.Close()
			_, err := wsconn.Dial(t.Context(), "ws"+strings.TrimPrefix(s.URL, "http")+"/?"+secret, wsconn.Options{})
			var status int
			if e, ok := errors.AsType[*wsconn.DialError](err); ok {
				status = e.Status
			}
			if err == nil || status != tt.status || !strings.HasPrefix(err.Error(), tt.text) {
				t.Fatalf("Dial = %v (status %d), want %d %q", err, status, tt.status, tt.text)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows the token: %v", err)
			}
			if len(accepted) > 0 {
				t.Error("the redirect was followed")
			}
		})
	}
}

func TestDialErrorsHideTheURL(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, url := range []string{
		"http://localhost/?" + secret, "localhost?" + secret, "ws://?" + secret, "ws://[::1/?" + secret, "ws://a b/?" + secret,
		"ws://localhost:port/?" + secret, "ws://%zz/?" + secret,
		"ws" + strings.TrimPrefix(closed.URL, "http") + "/?" + secret,
	} {
		c, err := wsconn.Dial(t.Context(), url, wsconn.Options{})
		if err == nil {
			c.Close()
			t.Errorf("Dial(%q) succeeded", url)
		} else if strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("Dial(%q) shows the token: %v", url, err)
		}
	}
}

func TestDialHeaderAndContext(t *testing.T) {
	header := make(chan http.Header, 1)
	accepted := make(chan *wsconn.Conn, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header <- r.Header
		c, err := wsconn.Accept(w, r, wsconn.Options{})
		check.OK(t, err)
		accepted <- c
	}))
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	o := wsconn.Options{HTTPHeader: http.Header{"Authorization": {"Bearer x"}}}
	c := must.Get(wsconn.Dial(ctx, "ws"+strings.TrimPrefix(s.URL, "http"), o))(t)
	defer c.Close()
	server := <-accepted
	defer server.Close()
	if got := (<-header).Get("Authorization"); got != "Bearer x" {
		t.Errorf("Authorization: %q", got)
	}
	if len(o.HTTPHeader) != 1 {
		t.Errorf("the caller's header was changed: %v", o.HTTPHeader)
	}
	cancel() // concerns dialling only
	transfer(t, c, server)
}

func TestDialTLS(t *testing.T) {
	accepted := make(chan *wsconn.Conn, 1)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := wsconn.Accept(w, r, wsconn.Options{})
		check.OK(t, err)
		accepted <- c
	}))
	defer s.Close()
	url := "wss" + strings.TrimPrefix(s.URL, "https")
	if _, err := wsconn.Dial(t.Context(), url, wsconn.Options{}); err == nil {
		t.Fatal("an unknown certificate was accepted")
	}
	trusting := s.Client().Transport.(*http.Transport).TLSClientConfig
	c := must.Get(wsconn.Dial(t.Context(), url, wsconn.Options{TLSConfig: trusting}))(t)
	server := <-accepted
	defer server.Close()
	transfer(t, c, server)
	transfer(t, server, c)
	go func() { _ = c.CloseReason(wsconn.CloseGoingAway, "bye") }()
	if _, err := server.Recv(t.Context()); err == nil || !strings.Contains(err.Error(), "bye") {
		t.Errorf("Recv = %v", err)
	}
}

func TestDialUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Skipf("unix sockets: %v", err)
	}
	accepted := make(chan *wsconn.Conn, 1)
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := wsconn.Accept(w, r, wsconn.Options{}); err == nil {
			accepted <- c
		}
	})}}
	s.Start()
	defer s.Close()
	c := must.Get(wsconn.Dial(t.Context(), "ws://local/", wsconn.Options{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		},
	}))(t)
	defer c.Close()
	server := <-accepted
	defer server.Close()
	transfer(t, c, server)
}

func TestAcceptOrigin(t *testing.T) {
	tests := []struct {
		name    string
		checked bool
		origin  string
		status  int // 0: accepted
	}{
		{"no origin", false, "", 0},
		{"same origin", false, "same", 0},
		{"foreign origin", false, "https://evil.example", 403},
		{"null origin", false, "null", 403},
		{"foreign, checked by the caller", true, "https://good.example", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			url, accepted := serve(t, wsconn.Options{OriginChecked: tt.checked})
			header := http.Header{}
			if tt.origin == "same" {
				tt.origin = "http" + strings.TrimPrefix(url, "ws")
			}
			if tt.origin != "" {
				header.Set("Origin", tt.origin)
			}
			c, err := wsconn.Dial(t.Context(), url, wsconn.Options{HTTPHeader: header})
			if tt.status == 0 {
				must.Do(t, err)
				c.Close()
				(<-accepted).Close()
				return
			}
			if e, ok := errors.AsType[*wsconn.DialError](err); !ok || e.Status != tt.status {
				t.Errorf("Dial = %v, want status %d", err, tt.status)
			}
		})
	}
}

func TestAcceptRefusesOtherRequests(t *testing.T) {
	url, _ := serve(t, wsconn.Options{})
	resp := must.Get(http.Get("http" + strings.TrimPrefix(url, "ws")))(t)
	resp.Body.Close()
	if resp.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("status %d, want %d", resp.StatusCode, http.StatusUpgradeRequired)
	}
}

// A dialled connection is read and written without Go's scheduler, also below TLS.
func TestDialWraps(t *testing.T) {
	upgrade := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := wsconn.Accept(w, r, wsconn.Options{}); err == nil {
			c.Close()
		}
	})
	plain, secure := httptest.NewServer(upgrade), httptest.NewTLSServer(upgrade)
	defer plain.Close()
	defer secure.Close()
	for _, s := range []*httptest.Server{plain, secure} {
		o := wsconn.Options{}
		if s == secure {
			o.TLSConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
		}
		c := must.Get(wsconn.Dial(t.Context(), "ws"+strings.TrimPrefix(s.URL, "http"), o))(t)
		if below := c.Socket(); rawio.Wrap(below) != below {
			t.Errorf("%T is not wrapped", below)
		}
		c.Close()
	}
}
