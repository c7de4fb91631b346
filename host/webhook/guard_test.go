package webhook_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"tether/host/webhook"
	"tether/internal/testkit/must"
)

var loopback = netip.MustParsePrefix("127.0.0.0/8")

// The address to which a name resolves at the moment of the connection counts; a
// certificate must be valid, and no redirect is followed.
func TestConnections(t *testing.T) {
	reached := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached++
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "https://"), ":")
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	for name, c := range map[string]struct {
		url     string
		allow   []netip.Prefix
		secure  *tls.Config
		why     webhook.Failure
		reached int
	}{
		"a name of loopback":      {"https://localhost:" + port + "/", nil, &tls.Config{RootCAs: pool, ServerName: "example.com"}, webhook.FailureRefused, 0},
		"allowed, redirects":      {server.URL, []netip.Prefix{loopback}, &tls.Config{RootCAs: pool}, webhook.Failure4xx, 1},
		"an unknown certificate":  {server.URL, []netip.Prefix{loopback}, nil, webhook.FailureTLS, 0},
		"another's certificate":   {server.URL, []netip.Prefix{loopback}, &tls.Config{RootCAs: pool, ServerName: "other.example.org"}, webhook.FailureTLS, 0},
		"no TLS at the other end": {"https://127.0.0.1:" + plainPort(t) + "/", []netip.Prefix{loopback}, nil, webhook.FailureTLS, 0},
		"nobody there":            {"https://127.0.0.1:1/", []netip.Prefix{loopback}, nil, webhook.FailureRefused, 0},
	} {
		j := newJournal()
		hub, err := webhook.New(webhook.Options{Open: j.open, Allow: c.allow, TLS: c.secure})
		must.Do(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { hub.Run(ctx); close(done) }()
		reached = 0
		_, err = hub.Subscribe(t.Context(), (&rig{}).ann, webhook.Request{Name: "x", URL: c.url, Secret: secretOf("a")})
		cancel()
		<-done
		if e, ok := errors.AsType[*webhook.EndpointError](err); !ok || e.Why != c.why || reached != c.reached {
			t.Errorf("%s: %v, reached %d times", name, err, reached)
		}
	}
}

// plainPort is the port of a server without TLS.
func plainPort(t *testing.T) string {
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	return port
}
