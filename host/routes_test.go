package host_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tether/host"
	"tether/host/rights"
	"tether/internal/testkit/must"
)

var updateRoutes = flag.Bool("update-routes", false, "rewrite testdata/routes.txt")

// senders are who sends a request: nobody, a token of each role, and a browser that has
// logged in.
var senders = []string{"", "wrong", "machine-a", "observer-o", "agent-b", "admin-c", "cookie"}

// sites are the name and the page by which a request comes.
var sites = []struct{ name, host, origin, site string }{
	{"address", "127.0.0.1:9187", "", ""},
	{"own-page", "host.example:9187", "http://host.example:9187", "same-origin"},
	{"rebound", "evil.example:9187", "", ""},
	{"foreign-page", "127.0.0.1:9187", "http://evil.example", "cross-site"},
	{"image", "127.0.0.1:9187", "", "cross-site"},
}

// TestRoutes requests every path with every method, by every name, from every page and
// sender. An answer is a status, with p if the headers of the page came with it.
func TestRoutes(t *testing.T) {
	h, url := serve(t, host.Options{Access: newUsers("machine-a", "observer-o", "agent-b", "admin-c"), Origins: []string{"host.example:9187"}})
	v := dial(t, url+"?tkn=machine-a", "laptop", viewOptions{})
	v.create(uri)
	v.ping()
	_, plain := ask(t, url, visit{path: "/plain", token: "observer-o"})
	_, rest, _ := strings.Cut(plain, `href="/terminals/`)
	id, _, _ := strings.Cut(rest, ".txt")
	requests := 0
	send := func(method, path, name, origin, site, who string) string {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		upgrade := method == "WS"
		if upgrade {
			method = http.MethodGet
		}
		r := httptest.NewRequestWithContext(ctx, method, "http://"+name+strings.ReplaceAll(path, "ID", id), nil)
		requests++ // a place of its own, because wrong tokens of one place are limited
		r.RemoteAddr = fmt.Sprintf("10.%d.%d.%d:1", requests>>16, requests>>8&255, requests&255)
		for key, value := range map[string]string{"Origin": origin, "Sec-Fetch-Site": site} {
			if value != "" {
				r.Header.Set(key, value)
			}
		}
		if upgrade {
			for key, value := range map[string]string{"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="} {
				r.Header.Set(key, value)
			}
		}
		switch who {
		case "":
		case "cookie":
			r.AddCookie(&http.Cookie{Name: "tether_host_9187", Value: loggedIn(t, h)})
		default:
			r.Header.Set("Authorization", "Bearer "+who)
		}
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		page := ""
		if answer.Header().Get("Content-Security-Policy") != "" {
			page = "p"
		}
		return fmt.Sprint(answer.Code, page)
	}
	var got bytes.Buffer
	fmt.Fprintf(&got, "# sender: %s\n", strings.Join(append([]string{"nobody"}, senders[1:]...), " "))
	for _, path := range []string{"/", "/launch", "/login", "/logout", "/events", "/plain", "/people", "/people/", "/people/entries", "/people/end", "/assets", "/assets/", "/assets/app.js", "/assets/manifest.webmanifest", "/assets/icon-192.png", "/assets/none.js",
		"/push", "/sw.js", "/terminals", "/terminals/", "/terminals/ID.txt", "/terminals/ID/state", "/terminals/ID/problems", "/terminals/ID", "/terminals/none.txt", "/s", "/s/", "/s/open", "/s/state", "/s/terminal", "/s/none",
		"/shells", "/shells/none", "/shells/none/x", "/lent", "/lent/none", "/lent/none/ann", "/mcp", "/mcp/", "/mcp/x", "/favicon.ico", "/none", "/none/x"} {
		for _, method := range []string{"GET", "HEAD", "POST", "DELETE", "WS"} {
			for _, from := range sites {
				fmt.Fprintf(&got, "%-6s %-22s %-12s", method, path, from.name)
				for _, who := range senders {
					fmt.Fprintf(&got, " %-4s", send(method, path, from.host, from.origin, from.site, who))
				}
				got.Truncate(len(bytes.TrimRight(got.Bytes(), " ")))
				got.WriteByte('\n')
			}
		}
	}
	file := filepath.Join("testdata", "routes.txt")
	if *updateRoutes {
		must.Do(t, os.WriteFile(file, got.Bytes(), 0o644))
	}
	want := must.Get(os.ReadFile(file))(t)
	lines := strings.Split(strings.ReplaceAll(string(want), "\r\n", "\n"), "\n")
	for i, line := range strings.Split(got.String(), "\n") {
		if i >= len(lines) || line != lines[i] {
			t.Errorf("line %d:\n got %s\nwant %s", i+1, line, lines[min(i, len(lines)-1)])
		}
	}
}

// loggedIn logs an observer's browser in and returns its cookie.
func loggedIn(t *testing.T, h *host.Host) string {
	t.Helper()
	_, code, _ := strings.Cut(h.Page().Launch(rights.Principal{Name: "ann", Role: rights.RoleObserver}), "#")
	r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1:9187/login", strings.NewReader("code="+code))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", "http://127.0.0.1:9187")
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	all := answer.Result().Cookies()
	if len(all) != 1 {
		t.Fatalf("login: %d %v", answer.Code, answer.Header())
	}
	return all[0].Value
}
