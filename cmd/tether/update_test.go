package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestUpdate asks a server for the newest version. The program of this test is no release.
func TestUpdate(t *testing.T) {
	newHome(t)
	sums := strings.Repeat("0", 64) + "  tether_9.9.9.cdx.json\n"
	status := http.StatusOK
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		w.WriteHeader(status)
		io.WriteString(w, sums)
	}))
	t.Cleanup(server.Close)
	if out, code := command(t, "update", "--from", server.URL+"/r/"); code != 0 || !strings.Contains(out, "9.9.9") || !strings.Contains(out, "installed by hand") {
		t.Errorf("update: %s", out)
	}
	if len(asked) != 1 || asked[0] != "/r/SHA256SUMS" {
		t.Errorf("the server was asked for %q", asked)
	}
	sums = "<html>"
	if out, code := command(t, "update", "--from", server.URL); code != 1 {
		t.Errorf("a page for people was taken as a list: %d, %s", code, out)
	}
	status = http.StatusNotFound
	if out, code := command(t, "update", "--from", server.URL); code != 1 {
		t.Errorf("a missing list: %d, %s", code, out)
	}
	if out, code := command(t, "update", "--from", "http://tether.example"); code != 1 {
		t.Errorf("an address without https: %d, %s", code, out)
	}
	if out, code := command(t, "update"); code != 0 || !strings.Contains(out, "installed by hand") {
		t.Errorf("without an address: %d, %s", code, out)
	}
}
