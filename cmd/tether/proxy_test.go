package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// The environment's proxy is asked for a way to hosts elsewhere, and hears no secret;
// hosts on this machine are reached without it.
func TestProxyOfTheEnvironment(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	var mu sync.Mutex
	var asked []string
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var all strings.Builder
		_ = r.Header.Write(&all)
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.Method+" "+r.RequestURI)
		if strings.Contains(all.String()+r.RequestURI+string(body), "canary") {
			t.Errorf("the proxy was told the token: %s %s\n%s", r.Method, r.RequestURI, all.String())
		}
		w.WriteHeader(http.StatusBadGateway)
	}))
	defer proxy.Close()
	for _, name := range []string{"HTTPS_PROXY", "HTTP_PROXY", "https_proxy", "http_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	t.Setenv("NO_PROXY", "")
	t.Setenv("no_proxy", "")
	newHome(t)
	h := &testHost{}
	must.Do(t, h.start("canary-token"))
	defer h.stop()
	if out, status := given(t, "canary-token\n", "pair", "--token-file", "-", "ws://"+h.address); status != 0 {
		t.Errorf("a host on this machine: %d %s", status, out)
	}
	mu.Lock()
	if len(asked) > 0 {
		t.Errorf("for a host on this machine the proxy was asked %q", asked)
	}
	mu.Unlock()
	out, status := given(t, "canary-token\n", "pair", "--token-file", "-", "wss://host.example")
	if status != 5 || strings.Contains(out, "canary") {
		t.Errorf("behind a proxy that does not know the way: %d %s", status, out)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Contains(asked, "CONNECT host.example:443") {
		t.Errorf("the proxy was asked %q", asked)
	}
}
