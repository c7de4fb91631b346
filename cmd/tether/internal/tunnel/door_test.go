package tunnel_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tether/cmd/tether/internal/tunnel"
)

// serve returns a door to a host that sets a cookie and says what it was asked.
func serve(t *testing.T, at string) *tunnel.Door {
	t.Helper()
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Set-Cookie", "guest=1; HttpOnly")
		_, _ = io.WriteString(w, r.Host+" "+r.Header.Get("Origin")+" "+r.Header.Get("X-Forwarded-For")+" "+r.URL.Path)
	}))
	t.Cleanup(host.Close)
	d := tunnel.NewDoor(strings.TrimPrefix(host.URL, "http://"), "/s/", "/mcp")
	if at != "" {
		d.FoundAt(at)
	}
	return d
}

func ask(d http.Handler, host, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://x"+path, nil)
	r.Host = host
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

// Only the paths for guests are there, whatever form others have.
func TestDoorHasItsPathsAlone(t *testing.T) {
	d := serve(t, "")
	for path, want := range map[string]int{
		"/s/": 200, "/s/open": 200, "/mcp": 200, "/": 404, "/s": 404, "/mcp/x": 404, "/people": 404, "/s/../people": 404, "/s/%2e%2e/people": 404,
		"/s/%2E%2E%2Fpeople": 404, "/s//people": 404, "/S/": 404, "/s/.": 404, "/terminals/x": 404,
	} {
		if got := ask(d, "127.0.0.1:1", path).Code; got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
}

// A name that is neither the tunnel's nor loopback's could be made to lead here, and a
// page of another origin is none of this door.
func TestDoorKnowsItsNames(t *testing.T) {
	const at = "https://term.example"
	for _, c := range []struct {
		at, host, origin string
		want             int
	}{
		{at, "term.example", "", 200},
		{at, "TERM.example", at, 200},
		{at, "127.0.0.1:99", at, 200}, // behind something that sets the name
		{at, "127.0.0.1:99", "http://127.0.0.1:99", 200},
		{at, "[::1]:99", "", 200},
		{at, "evil.example", "", 403},
		{at, "term.example.evil.example", "", 403},
		{at, "term.example", "http://term.example", 403},
		{at, "term.example", "https://evil.example", 403},
		{at, "term.example", "null", 403},
		{at, "10.0.0.1:99", "", 403},
		{"", "term.example", "", 403},
		{"", "localhost:99", "http://localhost:99", 200},
		{"", "localhost:99", "http://localhost:98", 403},
	} {
		if got := ask(serve(t, c.at), c.host, "/s/", "Origin", c.origin).Code; got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// The host sees its own name and nobody's claims about addresses. Behind https its
// cookies are for https.
func TestDoorTellsTheHostItsOwnName(t *testing.T) {
	d := serve(t, "https://term.example")
	w := ask(d, "term.example", "/s/x", "Origin", "https://term.example", "X-Forwarded-For", "1.2.3.4")
	name, rest, _ := strings.Cut(w.Body.String(), " ")
	if !strings.HasPrefix(name, "127.0.0.1:") || rest != "http://"+name+"  /s/x" {
		t.Errorf("the host was asked %q", w.Body)
	}
	if got := w.Header().Get("Set-Cookie"); got != "guest=1; HttpOnly; Secure" {
		t.Errorf("cookie %q", got)
	}
	if got := ask(serve(t, "http://127.0.0.1:1"), "127.0.0.1:1", "/s/").Header().Get("Set-Cookie"); got != "guest=1; HttpOnly" {
		t.Errorf("cookie over http %q", got)
	}
}
