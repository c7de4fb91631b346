package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"tether/internal/testkit/must"
)

// A domain for previews that could meet the page is refused at the start, with the
// reason.
func TestPreviewDomain(t *testing.T) {
	t.Parallel()
	page := []string{"--listen", "127.0.0.1:0", "--public-url", "https://host.example.com"}
	for _, c := range []struct {
		args []string
		why  string
	}{
		{append(page, "--preview-domain", "host.example.com"), "own name"},
		{append(page, "--preview-domain", "example.com"), "above"},
		{append(page, "--preview-domain", "p.host.example.com:8443"), "below"},
		{append(page, "--preview-domain", "*.preview.example"), "without *"},
		{append(page, "--preview-domain", "localhost"), "own machine"},
		{append(page, "--preview-domain", "preview.example", "--allow-origin", "x.Preview.example:443"), "--allow-origin"},
		{[]string{"--listen", "127.0.0.1:0", "--preview-domain", "preview.example"}, "below localhost"},
		{[]string{"--listen", "0.0.0.0:0", "--plaintext", "--preview-domain", "preview.example"}, "page's name is not known"},
		{[]string{"--listen", "0.0.0.0:0", "--plaintext", "--public-url", "http://host.example.com", "--preview-domain", "preview.example"}, "need https"},
	} {
		var stderr strings.Builder
		status := run(t.Context(), c.args, io.Discard, &stderr)
		if status != exitUsage || !strings.Contains(stderr.String(), c.why) {
			t.Errorf("%q: status %d, %s", c.args, status, stderr.String())
		}
	}
}

// Where previews are: below localhost at a page on this machine, below the given domain
// at another one, else nowhere, and the page says why.
func TestWherePreviewsAre(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string // in the page's policy; "" for none
	}{
		"on loopback":             {nil, "http://*.localhost:PORT"},
		"with a public name":      {[]string{"--public-url", "https://host.example.com"}, ""},
		"with a domain":           {[]string{"--public-url", "https://host.example.com", "--preview-domain", "Preview.example"}, "https://*.preview.example"},
		"with a port":             {[]string{"--public-url", "https://host.example.com:8443", "--preview-domain", "preview.example"}, "https://*.preview.example:8443"},
		"with a port of its own":  {[]string{"--public-url", "https://host.example.com", "--preview-domain", "preview.example:444"}, "https://*.preview.example:444"},
		"with a proxy over there": {[]string{"--public-url", "http://localhost:8080", "--preview-domain", "localhost"}, "http://*.localhost:8080"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, c.args...)
			url := "http" + strings.TrimPrefix(r.url, "ws")
			a := must.Get(http.Get(url + "/launch"))(t)
			a.Body.Close()
			_, actions, _ := strings.Cut(a.Header.Get("Content-Security-Policy"), "form-action 'self'")
			actions, _, _ = strings.Cut(actions, ";")
			if want := strings.ReplaceAll(c.want, "PORT", url[strings.LastIndexByte(url, ':')+1:]); strings.TrimSpace(actions) != want {
				t.Errorf("forms go to %q, want %q", actions, want)
			}
		})
	}
}
