package preview_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"tether/host/preview"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// A dev server sees a request as a browser on its machine would send it.
func TestRequestOfTheDevServer(t *testing.T) {
	s := newStage(t, func(w http.ResponseWriter, r *http.Request) {
		if w.Header().Set("X-Host", r.Host); r.Header.Get("Range") != "" {
			w.Header().Set("Content-Range", "bytes 0-0/2")
			w.WriteHeader(http.StatusPartialContent)
		}
	})
	cookie := s.enter("v1")
	own := s.origin()
	a := s.ask("GET", own+"/a%2Fb?c=%20d&tkn=x", nil, "Cookie", "a=1; "+cookie+"; __host-Tether_host=x; b=2; tether_host_1=y", "Origin", own, "Referer", own+"/from?x", "Authorization", "Basic abc",
		"Tether-Reader", "evil", "tether-terminal", "evil", "X-Forwarded-For", "1.2.3.4", "Forwarded", "for=1.2.3.4", "Range", "bytes=0-0", "If-None-Match", `"x"`, "Proxy-Authorization", "Basic x",
		"Connection", "keep-alive, X-Drop", "X-Drop", "1", "Upgrade", "h2c", "Te", "trailers")
	if a.StatusCode != http.StatusPartialContent {
		t.Fatalf("%s %s", a.Status, a.text)
	}
	r := s.machine.last(t)
	want := map[string]string{"Cookie": "a=1; b=2", "Origin": "http://localhost:3000", "Referer": "http://localhost:3000/from?x", "Authorization": "Basic abc", "Range": "bytes=0-0", "If-None-Match": `"x"`}
	for name, value := range want {
		if got := r.Header.Get(name); got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
	for _, name := range []string{"Tether-Reader", "Tether-Terminal", "X-Forwarded-For", "Forwarded", "Proxy-Authorization", "X-Drop", "Upgrade", "Connection"} {
		if got := r.Header.Get(name); got != "" {
			t.Errorf("%s is %q", name, got)
		}
	}
	if r.Host != "localhost:3000" || r.URL.String() != "http://localhost:3000/a%2Fb?c=%20d&tkn=x" {
		t.Errorf("asked for %s at %s", r.URL, r.Host)
	}
	s.ask("GET", own+"/", nil, "Cookie", cookie, "Sec-Fetch-Site", "none", "Referer", "https://chat.example/room", "Authorization", "Bearer secret")
	if r := s.machine.last(t); r.Header.Get("Referer")+r.Header.Get("Authorization")+r.Header.Get("Cookie") != "" || r.Header.Get("Accept-Encoding") != "identity" {
		t.Errorf("of somebody who follows a link: %q", r.Header)
	}
}

// What a dev server answers reaches the browser as it is, but for what would reach beyond
// the preview.
func TestAnswerOfTheDevServer(t *testing.T) {
	s := newStage(t, func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		for _, c := range []string{"a=1; Path=/", "b=2; domain=localhost", "c=3; HttpOnly ;  Domain = preview.example", "tether_preview_" + strings.Split(r.Host, ":")[1] + "=x", "__Host-tether_preview=x; Secure; Path=/",
			"__host-TETHER_preview=x", "tether_host_9187=x", "=tether_host_9187=x", "justvalue", "d=4; SameSite=None; Secure", "domain=5", "e=6;Domain"} {
			h.Add("Set-Cookie", c)
		}
		for name, value := range map[string]string{"Strict-Transport-Security": "max-age=1; includeSubDomains", "Alt-Svc": `h3=":443"`, "Clear-Site-Data": `"*"`, "Tether-Reader": "x", "ETag": `"x"`,
			"Cache-Control": "public, max-age=5", "SourceMap": "/a.map", "X-Frame-Options": "SAMEORIGIN", "Location": "/next?a#b", "Trailer": "Set-Cookie"} {
			h.Set(name, value)
		}
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusFound)
		_, _ = io.WriteString(w, "text\x00\xff")
		h.Set("Set-Cookie", "late=1; Domain=localhost")
	})
	cookie := s.enter("v1")
	for range 2 {
		a := s.ask("GET", s.origin()+"/", nil, "Cookie", cookie)
		if a.StatusCode != http.StatusFound || a.text != "text\x00\xff" || a.Header.Get("Location") != "/next?a#b" || a.Header.Get("ETag") != `"x"` || a.Header.Get("SourceMap") != "/a.map" || a.Header.Get("X-Frame-Options") != "SAMEORIGIN" {
			t.Errorf("%s %q %q", a.Status, a.Header, a.text)
		}
		if got := a.Header["Set-Cookie"]; !slices.Equal(got, []string{"a=1; Path=/", "d=4; SameSite=None; Secure", "domain=5"}) {
			t.Errorf("cookies %q", got)
		}
		if len(a.Trailer) != 0 || !slices.Equal(a.Header["Cache-Control"], []string{"public, max-age=5", "private"}) {
			t.Errorf("%q %q", a.Trailer, a.Header["Cache-Control"])
		}
		for _, name := range []string{"Strict-Transport-Security", "Alt-Svc", "Clear-Site-Data", "Tether-Reader"} {
			if a.Header.Get(name) != "" {
				t.Errorf("%s: %s", name, a.Header.Get(name))
			}
		}
	}
	if n := strings.Count(s.log.text(), "Domain"); n != 2 { // once as the header's name, once in words
		t.Errorf("cookies with Domain were logged %d times:\n%s", n, s.log.text())
	}
}

// A port that is lent for reading takes no bodies and no other methods. One that is lent
// for writing takes slow and large ones.
func TestReadingAndWriting(t *testing.T) {
	s := newStage(t, func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, r.Method, n, err)
	})
	cookie := s.enter("v1")
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "POST", "PUT", "DELETE", "PATCH", "PROPFIND", "TRACE"} {
		a := s.ask(method, s.origin()+"/", nil, "Cookie", cookie, "Origin", s.origin())
		if want := slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, method); (a.StatusCode == http.StatusOK) != want {
			t.Errorf("reading: %s is answered %s", method, a.Status)
		}
	}
	before := s.machine.asked()
	if a := s.ask("GET", s.origin()+"/", strings.NewReader("body"), "Cookie", cookie); a.StatusCode != http.StatusForbidden || s.machine.asked() != before {
		t.Errorf("a GET with a body: %s", a.Status)
	}
	s.finds(func(string, string) (*preview.Port, error) {
		return lent(preview.Port{Write: true}, s.machine), nil
	})
	const size = 4 << 20
	if a := s.ask("POST", s.origin()+"/", io.LimitReader(neverEnding('x'), size), "Cookie", cookie, "Origin", s.origin()); a.text != fmt.Sprint("POST", size, nil) {
		t.Errorf("writing: %s %s", a.Status, a.text)
	}
	if a := s.ask("TRACE", s.origin()+"/", nil, "Cookie", cookie, "Origin", s.origin()); a.StatusCode != http.StatusBadRequest {
		t.Errorf("TRACE: %s", a.Status)
	}
}

type neverEnding byte

// Read implements io.Reader.
func (b neverEnding) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(b)
	}
	return len(p), nil
}

// A WebSocket passes in both directions, with its subprotocol, and its end passes, too.
func TestWebSocket(t *testing.T) {
	testkit.Leaks(t)
	s := newStage(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Host != "localhost:3000" || r.Header.Get("Origin") != "http://localhost:3000" {
			http.Error(w, "not from the page: "+r.Host+r.Header.Get("Origin"), http.StatusForbidden)
			return
		}
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"vite-hmr"}, OriginPatterns: []string{"localhost:3000"}})
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			kind, text, err := c.Read(r.Context())
			if err != nil {
				return
			}
			if string(text) == "end" {
				c.Close(websocket.StatusNormalClosure, "over")
				return
			}
			if c.Write(r.Context(), kind, append([]byte("echo "), text...)) != nil {
				return
			}
		}
	})
	cookie := s.enter("v1")
	dial := func(origin string) (*websocket.Conn, int, error) {
		h := http.Header{"Cookie": {cookie}}
		if origin != "" {
			h.Set("Origin", origin)
		}
		c, a, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(s.origin(), "http")+"/hmr?token=a", &websocket.DialOptions{HTTPClient: s.client(), HTTPHeader: h, Subprotocols: []string{"vite-hmr"}})
		if a == nil {
			t.Fatal(err)
		}
		return c, a.StatusCode, err
	}
	for _, origin := range []string{"", s.page, "null", "https://evil.example", s.previews.URL(s.previews.Label(3000, "other")), "http://localhost:3000"} {
		if _, status, err := dial(origin); err == nil || status != http.StatusForbidden || s.machine.asked() != 0 {
			t.Errorf("a WebSocket of %q: %d %v", origin, status, err)
		}
	}
	c, _, err := dial(s.origin())
	must.Do(t, err)
	defer c.CloseNow()
	if c.Subprotocol() != "vite-hmr" {
		t.Errorf("the subprotocol is %q", c.Subprotocol())
	}
	for _, text := range []string{"a", strings.Repeat("b", 30<<10)} {
		must.Do(t, c.Write(t.Context(), websocket.MessageText, []byte(text)))
		if _, got, err := c.Read(t.Context()); err != nil || string(got) != "echo "+text {
			t.Errorf("%.10q %v", got, err)
		}
	}
	must.Do(t, c.Write(t.Context(), websocket.MessageText, []byte("end")))
	_, _, err = c.Read(t.Context())
	if websocket.CloseStatus(err) != websocket.StatusNormalClosure {
		t.Errorf("the end: %v", err)
	}
}

// Server-sent events pass at once, and 100 MB as they are, no faster than they are read.
func TestStreams(t *testing.T) {
	next, size := make(chan string), int64(100<<20)
	var sent atomic.Int64
	s := newStage(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/events" {
			w.Header().Set("Content-Type", "text/event-stream")
			for text := range next {
				fmt.Fprintf(w, "data: %s\n\n", text)
				_ = http.NewResponseController(w).Flush()
			}
			return
		}
		piece := make([]byte, 64<<10)
		for sent.Load() < size {
			n, err := w.Write(piece)
			if sent.Add(int64(n)); err != nil {
				return
			}
		}
	})
	cookie := s.enter("v1")
	get := func(path string) *http.Response {
		r := must.Get(http.NewRequestWithContext(t.Context(), "GET", s.origin()+path, nil))(t)
		r.Header.Set("Cookie", cookie)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		return must.Get(s.client().Do(r))(t)
	}
	a := make(chan *http.Response, 1)
	go func() { a <- get("/events") }()
	next <- "one"
	events := <-a
	defer events.Body.Close()
	lines := bufio.NewReader(events.Body)
	for _, text := range []string{"one", "two"} {
		if text == "two" {
			next <- text
		}
		line := must.Get(lines.ReadString('\n'))(t)
		if _, err := lines.Discard(1); err != nil || line != "data: "+text+"\n" {
			t.Errorf("%q %v", line, err)
		}
	}
	close(next)
	large := get("/large")
	defer large.Body.Close()
	must.Get(io.ReadFull(large.Body, make([]byte, 1<<20)))(t)
	before, still := int64(-1), 0
	testkit.Eventually(t, testkit.Patience, "the dev server waits for the browser", func() bool {
		now := sent.Load()
		if still++; now != before {
			before, still = now, 0
		}
		return still > 20
	})
	if before > size/2 {
		t.Errorf("the dev server has sent %d bytes to a browser that has read 1 MiB", before)
	}
	sum := sha256.New()
	if n, err := io.Copy(sum, large.Body); n != size-1<<20 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// What the machine says in place of the dev server is a page of ours, which looks again
// by itself where that may help.
func TestProblems(t *testing.T) {
	var status atomic.Int64
	s := newStage(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "back") })
	cookie := s.enter("v1")
	s.machine.say = func(*http.Request) *http.Response {
		switch n := int(status.Load()); n {
		case 0:
			return nil
		default:
			return &http.Response{StatusCode: n, Header: http.Header{"Tether-Error": {"nothing listens <b>here</b>\u202e\t: npm run dev has ended"}, "Set-Cookie": {"a=b"}}, Body: io.NopCloser(strings.NewReader("raw"))}
		}
	}
	for _, c := range []struct {
		status int
		again  bool
	}{{http.StatusBadGateway, true}, {http.StatusServiceUnavailable, true}, {http.StatusForbidden, false}, {http.StatusNotFound, false}} {
		status.Store(int64(c.status))
		a := s.ask("GET", s.origin()+"/x", nil, "Cookie", cookie, "Sec-Fetch-Dest", "document")
		if a.StatusCode != c.status || !strings.Contains(a.text, "nothing listens &lt;b&gt;here&lt;/b&gt; : npm run dev has ended") || strings.Contains(a.text, "setInterval") != c.again || a.Header.Get("Set-Cookie") != "" {
			t.Errorf("%d: %s %q %s", c.status, a.Status, a.Header, a.text)
		}
		if a.Header.Get("Tether-Error") == "" || !strings.Contains(a.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("%d: %q", c.status, a.Header)
		}
		if a := s.ask("GET", s.origin()+"/x.js", nil, "Cookie", cookie); a.Header.Get("Content-Type") != "text/plain; charset=utf-8" || strings.Contains(a.text, "<html") {
			t.Errorf("for a script: %q %s", a.Header, a.text)
		}
	}
	status.Store(0)
	if a := s.ask("HEAD", s.origin()+"/x", nil, "Cookie", cookie); a.StatusCode != http.StatusOK || a.Header.Get("Tether-Error") != "" {
		t.Errorf("when it is back: %s %q", a.Status, a.Header)
	}
	s.finds(func(string, string) (*preview.Port, error) { return nil, errors.New("no link\nto it") })
	if a := s.ask("GET", s.origin()+"/", nil, "Cookie", cookie, "Sec-Fetch-Dest", "document"); a.StatusCode != http.StatusBadGateway || !strings.Contains(a.text, "setInterval") || strings.Contains(a.text, "no link") {
		t.Errorf("without a reason: %s %s", a.Status, a.text)
	}
}

// A right that ends, ends what is under way: within a second, also for a browser that
// does not read.
func TestRightsEnd(t *testing.T) {
	testkit.Leaks(t)
	s := newStage(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			for {
				if _, err := w.Write(make([]byte, 64<<10)); err != nil {
					return
				}
			}
		}
		c, err := websocket.Accept(w, r, &websocket.AcceptOptions{OriginPatterns: []string{"*"}})
		if err != nil {
			return
		}
		defer c.CloseNow()
		for c.Write(r.Context(), websocket.MessageText, make([]byte, 1024)) == nil {
		}
	})
	cookie := s.enter("v1")
	for what, end := range map[string]func(stop context.CancelCauseFunc){
		"with a reason": func(stop context.CancelCauseFunc) {
			stop(&preview.Problem{Status: http.StatusForbidden, Text: "logged out"})
		},
		"without one": func(stop context.CancelCauseFunc) { stop(nil) },
	} {
		live, stop := context.WithCancelCause(context.Background())
		s.finds(func(string, string) (*preview.Port, error) {
			return lentWhile(live, preview.Port{}, s.machine), nil
		})
		r := must.Get(http.NewRequestWithContext(t.Context(), "GET", s.origin()+"/large", nil))(t)
		r.Header.Set("Cookie", cookie)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		a := must.Get(s.client().Do(r))(t)
		c, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(s.origin(), "http")+"/", &websocket.DialOptions{HTTPClient: s.client(), HTTPHeader: http.Header{"Cookie": {cookie}, "Origin": {s.origin()}}})
		must.Do(t, err)
		_, _, err = c.Read(t.Context())
		must.Do(t, err)
		end(stop)
		// Only what is on its way comes now: the browser has not read until here.
		if _, err := io.Copy(io.Discard, a.Body); err == nil {
			t.Errorf("%s: the download has an end", what)
		}
		for err = nil; err == nil; {
			_, _, err = c.Read(t.Context())
		}
		a.Body.Close()
		c.CloseNow()
		stop(nil)
	}
}
