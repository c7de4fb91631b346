package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tether/internal/testkit"
)

// A person waits for a URL as agents do.
func TestWaitForURL(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	t.Parallel() // it waits most of the time
	home := acpHome(t)
	everything(home, "run", "--detach", "--name", "web", "--", "sleep", "600")
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/ready" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(srv.Close)
	for _, c := range []struct {
		args   []string
		out    string
		status int
	}{
		{[]string{"--url", srv.URL + "/ready"}, "HTTP status 200", 0},
		{[]string{"--url", srv.URL, "--timeout", "5s"}, "timed out: it answers 503", 8},
		{[]string{"--url", "http://example.com/"}, "", 2},
		{[]string{"--pattern", "x", "--settle", "-1s"}, "", 2},
	} {
		if out, status := everything(home, append([]string{"wait", "web"}, c.args...)...); !strings.Contains(out, c.out) || status != c.status {
			t.Errorf("%v: %q, status %d", c.args, out, status)
		}
	}
}
