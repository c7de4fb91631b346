package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestUpdate asks a server for the newest version. The program of this test is no
// release.
func TestUpdate(t *testing.T) {
	newHome(t)
	serving := func(status int, text string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/r/SHA256SUMS" {
				t.Errorf("the server was asked for %s", r.URL)
			}
			w.WriteHeader(status)
			io.WriteString(w, text)
		}))
		t.Cleanup(server.Close)
		return server.URL + "/r/"
	}
	sums := strings.Repeat("0", 64) + "  tether_9.9.9.cdx.json\n"
	if out, code := command(t, "update", "--from", serving(http.StatusOK, sums)); code != 0 || !strings.Contains(out, "9.9.9") || !strings.Contains(out, "installed by hand") {
		t.Errorf("update: %s", out)
	}
	if out, code := command(t, "update", "--from", serving(http.StatusOK, "<html>")); code != 1 {
		t.Errorf("a page for people was taken as a list: %d, %s", code, out)
	}
	if out, code := command(t, "update", "--from", serving(http.StatusNotFound, sums)); code != 1 {
		t.Errorf("a missing list: %d, %s", code, out)
	}
	if out, code := command(t, "update", "--from", "http://tether.example"); code != 1 {
		t.Errorf("an address without https: %d, %s", code, out)
	}
	if out, code := command(t, "update"); code != 0 || !strings.Contains(out, "installed by hand") {
		t.Errorf("without an address: %d, %s", code, out)
	}
}
