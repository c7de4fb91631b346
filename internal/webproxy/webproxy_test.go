package webproxy_test

import (
	"net/http"
	"testing"

	"tether/internal/testkit/must"
	"tether/internal/webproxy"
)

func TestFor(t *testing.T) {
	for _, c := range []struct {
		name string
		env  map[string]string
		url  string
		want string // "-": an error
	}{
		{"nothing", nil, "wss://h.example/x", ""},
		{"ALL_PROXY alone", map[string]string{"ALL_PROXY": "socks5://p:1080"}, "wss://h.example", "socks5://p:1080"},
		{"all_proxy alone", map[string]string{"all_proxy": "socks5h://p:1080"}, "ws://h.example", "socks5h://p:1080"},
		{"a nearer one", map[string]string{"ALL_PROXY": "http://all:1", "HTTPS_PROXY": "http://tls:2"}, "wss://h.example", "http://tls:2"},
		{"of the other scheme", map[string]string{"ALL_PROXY": "http://all:1", "HTTPS_PROXY": "http://tls:2"}, "http://h.example", "http://all:1"},
		{"without a scheme", map[string]string{"ALL_PROXY": "p:3128"}, "https://h.example", "http://p:3128"},
		{"NO_PROXY", map[string]string{"ALL_PROXY": "http://all:1", "NO_PROXY": ".example"}, "wss://h.example", ""},
		{"this machine", map[string]string{"ALL_PROXY": "http://all:1"}, "ws://127.0.0.1:1", ""},
		{"this machine by name", map[string]string{"ALL_PROXY": "http://all:1"}, "ws://localhost:1", ""},
		{"another kind", map[string]string{"ALL_PROXY": "socks4://p:1"}, "wss://h.example", "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy", "REQUEST_METHOD"} {
				t.Setenv(name, "")
			}
			for name, value := range c.env { // after all, since case does not count on Windows
				t.Setenv(name, value)
			}
			r := must.Get(http.NewRequest("GET", c.url, nil))(t)
			got := "-"
			if proxy, err := webproxy.For(r); err == nil && proxy != nil {
				got = proxy.String()
			} else if err == nil {
				got = ""
			}
			if got != c.want {
				t.Errorf("%s with %v: %q, want %q", c.url, c.env, got, c.want)
			}
		})
	}
}
