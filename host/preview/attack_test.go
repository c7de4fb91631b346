package preview_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/host/preview"
	"tether/internal/testkit/must"
)

// Requests that no preview's own page makes reach no dev server, whatever cookie the
// browser adds.
func TestForeignPages(t *testing.T) {
	s := newStage(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "secret source") })
	cookie := s.enter("v1")
	neighbour := s.previews.URL(s.previews.Label(4000, "evil"))
	for _, c := range []struct {
		what, method string
		headers      []string
		allowed      bool
	}{
		{"its own page's script", "GET", []string{"Origin", s.origin()}, true},
		{"its own page's image", "GET", nil, true},
		{"a form of its own page that tells no referrer", "GET", []string{"Origin", "null"}, true},
		{"a person who types the address", "GET", []string{"Sec-Fetch-Site", "none"}, true},
		{"a person who follows a link", "GET", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, true},
		{"a person who follows a neighbour's link", "GET", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, true},
		{"a neighbour's script", "GET", []string{"Origin", neighbour, "Sec-Fetch-Site", "same-site"}, false},
		{"a neighbour's script element", "GET", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "script"}, false},
		{"a neighbour's image", "GET", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors", "Sec-Fetch-Dest", "image"}, false},
		{"a neighbour's frame", "GET", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, false},
		{"another page's form", "POST", []string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, false},
		{"a page without a name", "GET", []string{"Origin", "null", "Sec-Fetch-Site", "cross-site"}, false},
		{"the host's page", "GET", []string{"Origin", s.page, "Sec-Fetch-Site", "cross-site"}, false},
		{"the dev server's address", "GET", []string{"Origin", "http://localhost:3000", "Sec-Fetch-Site", "cross-site"}, false},
		{"the same name by another scheme", "GET", []string{"Origin", "https" + strings.TrimPrefix(s.origin(), "http")}, false},
		{"the same name at another port", "GET", []string{"Origin", strings.TrimSuffix(s.origin(), s.port()) + "1"}, false},
		{"a preflight of another page", "OPTIONS", []string{"Origin", "https://evil.example", "Access-Control-Request-Method", "GET", "Sec-Fetch-Site", "cross-site"}, false},
		{"a browser that does not say", "GET", []string{"Sec-Fetch-Site", ""}, false},
		{"a browser that says nonsense", "GET", []string{"Sec-Fetch-Site", "same-origin, none"}, false},
	} {
		before := s.machine.asked()
		a := s.ask(c.method, s.origin()+"/", nil, append([]string{"Cookie", cookie}, c.headers...)...)
		if reached := s.machine.asked() > before; reached != c.allowed || (a.StatusCode == http.StatusOK) != c.allowed || !c.allowed && a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %s %s", c.what, a.Status, a.text)
		}
		if a.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %q", c.what, a.Header)
		}
	}
}

// Somebody without this preview's cookie learns nothing about it, not even that it
// exists.
func TestWithoutTheCookie(t *testing.T) {
	s := newStage(t, func(http.ResponseWriter, *http.Request) {})
	name, value, _ := strings.Cut(s.enter("v1"), "=")
	none := s.previews.Label(3000, "none")
	visitor, stamp, _ := strings.Cut(value, ".")
	for what, cookie := range map[string]string{
		"none": "", "another name": "x=" + value, "no stamp": name + "=" + visitor, "an empty stamp": name + "=" + visitor + ".", "another visitor": name + "=v2." + stamp, "no visitor": name + "=." + stamp,
		"a stamp for more": name + "=" + value + "a", "in quotes": name + `="` + strings.ToUpper(value) + `"`,
	} {
		var texts []string
		for _, label := range []string{s.label, none} {
			a := s.ask("GET", s.previews.URL(label)+"/", nil, "Cookie", cookie, "Sec-Fetch-Site", "none")
			if a.StatusCode != http.StatusForbidden {
				t.Errorf("%s: %s %s", what, a.Status, a.text)
			}
			texts = append(texts, a.text)
		}
		if texts[0] != texts[1] {
			t.Errorf("%s: %q", what, texts)
		}
	}
	// The cookie of another preview, which lies at the same name of a cookie.
	if a := s.ask("GET", s.previews.URL(none)+"/", nil, "Cookie", name+"="+value, "Sec-Fetch-Site", "none"); a.StatusCode != http.StatusForbidden {
		t.Errorf("another preview's cookie: %s", a.Status)
	}
	if a := s.ask("GET", s.origin()+"/", nil, "Cookie", name+"=v2."+stamp+"; "+name+"="+value); a.StatusCode != http.StatusOK {
		t.Errorf("beside a planted cookie: %s", a.Status)
	}
	if s.machine.asked() != 1 {
		t.Errorf("the dev server was asked %d times", s.machine.asked())
	}
}

// Requests that two programs could read differently, or that are not for a page.
func TestOddRequests(t *testing.T) {
	s := newStage(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		w.Header().Set("X-Read", string(rune('0'+n)))
	})
	s.finds(func(string, string) (*preview.Port, error) {
		return lent(preview.Port{Write: true}, s.machine), nil
	})
	cookie := s.enter("v1")
	host := s.label + ".localhost:" + s.port()
	head := "Host: " + host + "\r\nOrigin: http://" + host + "\r\nCookie: " + cookie + "\r\nConnection: close\r\n"
	for what, text := range map[string]string{
		"two lengths":              "POST / HTTP/1.1\r\n" + head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab",
		"an odd encoding":          "POST / HTTP/1.1\r\n" + head + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
		"two encodings":            "POST / HTTP/1.1\r\n" + head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
		"a space before the colon": "POST / HTTP/1.1\r\n" + head + "Content-Length : 1\r\n\r\na",
		"a folded header":          "GET / HTTP/1.1\r\n" + head + "X-A: b\r\n\tc\r\nX: \x00\r\n\r\n",
		"an absolute URI":          "GET http://" + host + "/ HTTP/1.1\r\n" + head + "\r\n",
		"another host's URI":       "GET http://169.254.169.254/ HTTP/1.1\r\n" + head + "\r\n",
		"CONNECT":                  "CONNECT " + host + " HTTP/1.1\r\n" + head + "\r\n",
		"CONNECT elsewhere":        "CONNECT localhost:22 HTTP/1.1\r\n" + head + "\r\n",
		"two hosts":                "GET / HTTP/1.1\r\n" + head + "Host: localhost\r\n\r\n",
		"two origins":              "GET / HTTP/1.1\r\n" + head + "Origin: https://evil.example\r\n\r\n",
		"an upgrade with a body":   "GET / HTTP/1.1\r\n" + head + "Upgrade: websocket\r\nContent-Length: 2\r\n\r\nab",
		"a path without a slash":   "GET x HTTP/1.1\r\n" + head + "\r\n",
	} {
		before := s.machine.asked()
		status, body := s.raw(text)
		if status == http.StatusOK || s.machine.asked() != before {
			t.Errorf("%s: %d %s", what, status, body)
		}
	}
	// Go's reading of these is the one that goes on: their second half is no request.
	for what, text := range map[string]string{
		"a length beside chunks":       "POST /one HTTP/1.1\r\n" + head + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /two HTTP/1.1\r\n" + head + "\r\n",
		"HTTP/2's upgrade":             "GET /one HTTP/1.1\r\n" + head + "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"a header of the host's words": "GET /one HTTP/1.1\r\n" + head + "tether-upgrade: websocket\r\nTETHER-PORT: 22\r\n\r\n",
	} {
		before := s.machine.asked()
		if status, body := s.raw(text); status != http.StatusOK && status != http.StatusBadRequest {
			t.Errorf("%s: %d %s", what, status, body)
		}
		if n := s.machine.asked() - before; n > 1 {
			t.Errorf("%s: the dev server got %d requests", what, n)
		}
		for name := range s.machine.last(t).Header {
			if strings.HasPrefix(name, "Tether-") || name == "Upgrade" || name == "Transfer-Encoding" {
				t.Errorf("%s: %q", what, s.machine.last(t).Header)
			}
		}
	}
}

// Endless headers end the request, from both sides.
func TestEndlessHeaders(t *testing.T) {
	s := newStage(t, func(w http.ResponseWriter, r *http.Request) {
		for i := range 100 {
			w.Header().Set("X-"+strings.Repeat("a", i+1), strings.Repeat("b", 1024))
		}
	})
	cookie := s.enter("v1")
	if a := s.ask("GET", s.origin()+"/", nil, "Cookie", cookie); a.StatusCode != http.StatusBadGateway || len(a.Header) > 12 {
		t.Errorf("from the dev server: %s %d", a.Status, len(a.Header))
	}
	conn := must.Get(net.Dial("tcp", s.server.Listener.Addr().String()))(t)
	defer conn.Close()
	must.Get(io.WriteString(conn, "GET / HTTP/1.1\r\nHost: "+s.label+".localhost:"+s.port()+"\r\n"))(t)
	line := bytes.Repeat([]byte("X-A: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\r\n"), 1000)
	var err error
	for sent := 0; err == nil; sent += len(line) {
		if _, err = conn.Write(line); sent > 64<<20 {
			t.Fatal("the server reads headers without end")
		}
	}
}

// A body may take as long as it moves: each 64 KiB have half a minute.
func TestSlowBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := must.Get(preview.New(preview.Options{Domain: "preview.example", Secure: true, Find: func(context.Context, string, string) (*preview.Port, error) {
			return lent(preview.Port{Write: true}, &machine{say: func(r *http.Request) *http.Response {
				_, _ = io.Copy(io.Discard, r.Body)
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}
			}}), nil
		}}))(t)
		label := p.Label(3000)
		target, code := p.Invite("v1", label, "https://host.test", "/")
		post := func(w http.ResponseWriter, path string, body io.Reader, headers ...string) {
			r := httptest.NewRequest("POST", path, body)
			r.Host = label + ".preview.example"
			for i := 0; i < len(headers); i += 2 {
				r.Header.Set(headers[i], headers[i+1])
			}
			p.ServeHTTP(w, r)
		}
		w := httptest.NewRecorder()
		post(w, strings.TrimPrefix(target, p.URL(label)), strings.NewReader(url.Values{"code": {code}}.Encode()), "Content-Type", "application/x-www-form-urlencoded", "Origin", "https://host.test", "Sec-Fetch-Dest", "document")
		cookie := w.Result().Cookies()[0].String()
		for what, c := range map[string]struct {
			piece int
			want  time.Duration // from the beginning to the last deadline
		}{"one that trickles": {1, 30 * time.Second}, "one that moves": {16 << 10, 46 * time.Second}} {
			d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
			began := time.Now()
			post(d, "/upload", &trickle{piece: c.piece, left: 16}, "Cookie", cookie, "Origin", p.URL(label))
			if d.Code != http.StatusOK || d.last.Sub(began) != c.want {
				t.Errorf("%s: %d, its last deadline is after %v, want %v", what, d.Code, d.last.Sub(began), c.want)
			}
		}
	})
}

// deadlines is an answer whose connection notes the deadlines of reading.
type deadlines struct {
	*httptest.ResponseRecorder
	last time.Time
}

// SetReadDeadline serves an http.ResponseController.
func (d *deadlines) SetReadDeadline(at time.Time) error { d.last = at; return nil }

// trickle gives a piece each second.
type trickle struct{ piece, left int }

// Read implements io.Reader.
func (r *trickle) Read(p []byte) (int, error) {
	if r.left--; r.left < 0 {
		return 0, io.EOF
	}
	<-time.After(time.Second)
	return min(len(p), r.piece), nil
}
