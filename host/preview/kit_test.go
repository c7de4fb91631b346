package preview_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"tether/host/preview"
	"tether/internal/testkit/must"
)

// machine is the way to a dev server as a machine goes it.
type machine struct {
	at    string
	inner http.Transport
	say   func(*http.Request) *http.Response // answers in place of the dev server, unless it returns nil

	mu   sync.Mutex
	seen []*http.Request
}

// RoundTrip implements http.RoundTripper.
func (m *machine) RoundTrip(r *http.Request) (*http.Response, error) {
	m.mu.Lock()
	m.seen = append(m.seen, r.Clone(context.Background()))
	m.mu.Unlock()
	if m.say != nil {
		if a := m.say(r); a != nil {
			return a, nil
		}
	}
	in := r.Clone(r.Context())
	in.URL.Host = m.at
	if r.Header.Get("Tether-Upgrade") == "" {
		return m.inner.RoundTrip(in)
	}
	in.Header.Set("Connection", "Upgrade")
	in.Header.Set("Upgrade", "websocket")
	in.Body, in.ContentLength = nil, 0
	a, err := m.inner.RoundTrip(in)
	if err != nil || a.StatusCode != http.StatusSwitchingProtocols {
		return a, err
	}
	both := a.Body.(io.ReadWriteCloser)
	go func() {
		_, _ = io.Copy(both, r.Body)
		both.Close()
	}()
	a.StatusCode, a.Status = http.StatusOK, "200 OK"
	a.Header.Set("Tether-Upgrade", "websocket")
	return a, nil
}

func (m *machine) last(t *testing.T) *http.Request {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.seen) == 0 {
		t.Fatal("the dev server was not asked")
	}
	return m.seen[len(m.seen)-1]
}

func (m *machine) asked() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.seen)
}

// stage is a server of previews with a dev server behind it.
type stage struct {
	t        *testing.T
	previews *preview.Previews
	server   *httptest.Server
	machine  *machine
	label    string
	log      *logged
	page     string // the origin of the host's page

	mu   sync.Mutex
	find func(visitor, label string) (*preview.Port, error)
}

// logged is a log.
type logged struct {
	mu  sync.Mutex
	all bytes.Buffer
}

// Write implements io.Writer.
func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *logged) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

func newStage(t *testing.T, devServer http.HandlerFunc) *stage {
	t.Helper()
	dev := httptest.NewServer(devServer)
	t.Cleanup(dev.Close)
	s := &stage{t: t, log: &logged{}, machine: &machine{at: dev.Listener.Addr().String(), inner: http.Transport{DisableCompression: true}}}
	t.Cleanup(s.machine.inner.CloseIdleConnections)
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.previews.Serves(r) {
			s.previews.ServeHTTP(w, r)
			return
		}
		http.Error(w, "the page", http.StatusTeapot)
	}))
	at := s.server.Listener.Addr().String()
	_, port, _ := net.SplitHostPort(at)
	s.page = "http://localhost:" + port
	s.previews = s.node(preview.Options{Domain: "localhost:" + port, Key: [32]byte{1}})
	s.label = s.previews.Label(3000, "laptop", "dev")
	s.find = func(visitor, label string) (*preview.Port, error) {
		if label != s.label {
			return nil, &preview.Problem{Status: http.StatusNotFound, Text: "not lent any more"}
		}
		return lent(preview.Port{Name: "laptop/dev"}, s.machine), nil
	}
	s.server.Start()
	t.Cleanup(s.server.Close)
	return s
}

// lent is port 3000 with a way to its dev server.
func lent(p preview.Port, way http.RoundTripper) *preview.Port {
	return lentWhile(context.Background(), p, way)
}

// lentWhile is lent until live ends.
func lentWhile(live context.Context, p preview.Port, way http.RoundTripper) *preview.Port {
	p.Number = 3000
	p.Begin = func(ctx context.Context) (preview.Request, error) {
		ctx, end := context.WithCancelCause(ctx)
		context.AfterFunc(live, func() { end(context.Cause(live)) })
		return &watched{way, ctx, end}, nil
	}
	return &p
}

// watched is a request under way.
type watched struct {
	http.RoundTripper
	ctx context.Context
	end context.CancelCauseFunc
}

// Context implements preview.Request.
func (w *watched) Context() context.Context { return w.ctx }

// End implements preview.Request.
func (w *watched) End() { w.end(nil) }

// node returns Previews that find what the stage finds.
func (s *stage) node(o preview.Options) *preview.Previews {
	o.Find = func(_ context.Context, visitor, label string) (*preview.Port, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.find(visitor, label)
	}
	o.Note = func(terminal string, port int, header, text string) {
		fmt.Fprintln(s.log, terminal, port, header+":", text)
	}
	return must.Get(preview.New(o))(s.t)
}

// finds replaces what the host finds.
func (s *stage) finds(find func(visitor, label string) (*preview.Port, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.find = find
}

func (s *stage) origin() string { return s.previews.URL(s.label) }

// client follows no redirects, and finds each name at the stage.
func (s *stage) client() *http.Client {
	way := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", s.server.Listener.Addr().String())
	}, DisableCompression: true}
	s.t.Cleanup(way.CloseIdleConnections)
	return &http.Client{Transport: way, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// reply is an answer that was read.
type reply struct {
	*http.Response
	text string
}

// ask sends a request of the preview's own page, with further headers.
func (s *stage) ask(method, url string, body io.Reader, headers ...string) reply {
	s.t.Helper()
	r := must.Get(http.NewRequestWithContext(s.t.Context(), method, url, body))(s.t)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i < len(headers); i += 2 {
		if headers[i+1] == "" {
			r.Header.Del(headers[i])
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	a := must.Get(s.client().Do(r))(s.t)
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		s.t.Fatal(err)
	}
	return reply{a, string(text)}
}

// bring brings a code, as the page does.
func (s *stage) bring(target, code, origin string) reply {
	s.t.Helper()
	return s.ask(http.MethodPost, target, strings.NewReader(url.Values{"code": {code}}.Encode()), "Content-Type", "application/x-www-form-urlencoded",
		"Origin", origin, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")
}

// enter returns the cookie of a visitor.
func (s *stage) enter(visitor string) string {
	s.t.Helper()
	target, code := s.previews.Invite(visitor, s.label, s.page, "/")
	a := s.bring(target, code, s.page)
	if a.StatusCode != http.StatusSeeOther || len(a.Cookies()) != 1 {
		s.t.Fatalf("a code is answered with %s %q %q", a.Status, a.text, a.Header)
	}
	c := a.Cookies()[0]
	return c.Name + "=" + c.Value
}

// raw sends bytes and returns the answer, status 0 if there is none.
func (s *stage) raw(text string) (status int, body string) {
	s.t.Helper()
	conn := must.Get(net.Dial("tcp", s.server.Listener.Addr().String()))(s.t)
	defer conn.Close()
	must.Get(io.WriteString(conn, text))(s.t)
	a, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, ""
	}
	defer a.Body.Close()
	all, _ := io.ReadAll(a.Body)
	return a.StatusCode, string(all)
}

func (s *stage) port() string { return s.page[strings.LastIndexByte(s.page, ':')+1:] }
