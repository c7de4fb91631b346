package fetch_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tether/agent/fetch"
	"tether/internal/testkit/must"
)

// A server is asked in what it speaks, also after it was started again in another way,
// and a request with a body only once.
func TestTransport(t *testing.T) {
	var seen []string
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = append(seen, fmt.Sprintf("%s %t %s %s %s", r.Method, r.TLS != nil, r.Header.Get("Origin"), r.Header.Get("Referer"), body))
	})
	plain, secure := httptest.NewServer(h), httptest.NewUnstartedServer(h)
	secure.Config.ErrorLog = nil
	secure.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	var now atomic.Pointer[httptest.Server]
	connections := 0
	tr := fetch.NewTransport(func(ctx context.Context) (net.Conn, error) {
		connections++
		return new(net.Dialer).DialContext(ctx, "tcp", now.Load().Listener.Addr().String())
	}, fetch.TransportOptions{Keep: time.Minute, FirstByte: time.Minute})
	ask := func(method, body string) {
		t.Helper()
		r := must.Get(http.NewRequestWithContext(t.Context(), method, "http://localhost:5173/", strings.NewReader(body)))(t)
		r.Header.Set("Origin", "http://localhost:5173")
		r.Header.Set("Referer", "http://localhost:51730/")
		resp := must.Get(tr.RoundTrip(r))(t)
		resp.Body.Close()
	}
	now.Store(secure)
	ask("POST", "one")
	ask("GET", "")
	if connections != 2 {
		t.Errorf("%d connections, want one in plain text and one that is kept", connections)
	}
	tr.CloseIdleConnections()
	now.Store(plain)
	ask("GET", "")
	ask("PUT", "two")
	want := "HEAD true   |POST true https://localhost:5173 http://localhost:51730/ one|GET true https://localhost:5173 http://localhost:51730/ |" +
		"GET false http://localhost:5173 http://localhost:51730/ |PUT false http://localhost:5173 http://localhost:51730/ two"
	if got := strings.Join(seen, "|"); got != want {
		t.Errorf("the servers have got\n%s, want\n%s", got, want)
	}
}
