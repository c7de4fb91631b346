package main

import (
	"net/http"
	"strings"
	"testing"

	"tether/internal/testkit/must"
)

// Browsers use https alone for a public name, whatever the answer is, and not for an
// address, for localhost, or where the person says no. Then a page that came by http may
// not connect.
func TestHTTPSAlone(t *testing.T) {
	for name, c := range map[string]struct {
		public string
		args   []string
		want   string
	}{
		"a name":             {"https://host.example", nil, "max-age=2592000"},
		"a name and a port":  {"https://host.example:8443", nil, "max-age=2592000"},
		"with --no-hsts":     {"https://host.example", []string{"--no-hsts"}, ""},
		"an address":         {"https://192.0.2.7", nil, ""},
		"an address of IPv6": {"https://[2001:db8::7]:8443", nil, ""},
		"this machine":       {"https://localhost:8443", nil, ""},
		"http":               {"http://127.0.0.1:8080", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, append(c.args, "--public-url", c.public)...)
			scheme, host, _ := strings.Cut(c.public, "://")
			ask := func(path, host, origin string) *http.Response {
				q := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "http"+strings.TrimPrefix(r.url, "ws")+path, nil))(t)
				q.Host = host
				if origin != "" {
					q.Header.Set("Origin", origin)
				}
				answer := must.Get(http.DefaultClient.Do(q))(t)
				answer.Body.Close()
				return answer
			}
			for _, path := range []string{"/", "/launch", "/assets/none", "/healthz", "/mcp", "/device/v1/identity"} {
				if all := ask(path, host, "").Header.Values("Strict-Transport-Security"); strings.Join(all, " ") != c.want {
					t.Errorf("%s: %q, want %q", path, all, c.want)
				}
			}
			if got := ask("/launch", "127.0.0.1", "").Header.Get("Strict-Transport-Security"); got != "" {
				t.Errorf("under another name: %q", got)
			}
			if got := ask("/launch", host, scheme+"://"+host).StatusCode; got != http.StatusOK {
				t.Errorf("the host's own page: %d", got)
			}
			if got := ask("/launch", host, "http://"+host).StatusCode; scheme == "https" && host != "localhost:8443" && got != http.StatusForbidden {
				t.Errorf("a page that came by http: %d", got)
			}
		})
	}
}
