package host_test

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/host/login"
	"tether/host/rights"
	"tether/host/webhook"
	"tether/host/webpush"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// pushes are a host's notifications of browsers, and their push service.
type pushes struct {
	t       *testing.T
	host    *host.Host // set before it is used
	hub     *webhook.Hub
	service *httptest.Server
	record  chan string // audit events

	mu  sync.Mutex
	of  map[string]*testkit.PushBrowser
	got map[string]chan string // what each browser shows
}

// pushing starts them, for a host that is made later.
func pushing(t *testing.T) *pushes {
	t.Helper()
	p := &pushes{t: t, of: map[string]*testkit.PushBrowser{}, got: map[string]chan string{}, record: make(chan string, 100)}
	p.service = httptest.NewTLSServer(http.HandlerFunc(p.take))
	t.Cleanup(p.service.Close)
	roots := x509.NewCertPool()
	roots.AddCert(p.service.Certificate())
	key, err := webpush.KeyOf([]byte("host"))
	if err != nil {
		t.Fatal(err)
	}
	p.hub, err = webhook.New(webhook.Options{TLS: &tls.Config{RootCAs: roots}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		Open: func(ctx context.Context, who rights.Principal, r webhook.Request) (webhook.Source, bool, error) {
			return webhook.OpenKinds(p.host.Agents())(ctx, who, r)
		},
		Audit: func(ev rights.AuditEvent) { p.record <- ev.Type + " " + ev.Name + ": " + ev.Detail },
		Push: &webhook.Push{SigningKey: key, Login: func(b login.Browser) (rights.Principal, bool) { return p.host.Logins().Of(b) },
			Sees: func(who rights.Principal, id string) bool { return p.host.Sees(who, id) }}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// run runs them for a host, until the test ends.
func (p *pushes) run(h *host.Host) {
	p.host = h
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { p.hub.Run(ctx) })
	p.t.Cleanup(func() { cancel(); run.Wait() })
}

// take is the push service.
func (p *pushes) take(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	p.mu.Lock()
	name := strings.TrimPrefix(r.URL.Path, "/")
	b, got := p.of[name], p.got[name]
	p.mu.Unlock()
	if err != nil || b == nil || r.Header.Get("Content-Encoding") != "aes128gcm" {
		p.t.Errorf("%s: %v, %v", r.URL, err, r.Header)
		return
	}
	var n struct{ Title, Text string }
	if err := json.Unmarshal(b.Decrypt(p.t, body), &n); err != nil {
		p.t.Error(err)
	}
	w.WriteHeader(http.StatusCreated)
	got <- n.Title + ": " + n.Text
}

// subscription is what the page sends of a browser, as JSON.
func (p *pushes) subscription(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[name] == nil {
		p.of[name], p.got[name] = testkit.Browser(p.t, "", ""), make(chan string, 100)
	}
	text, err := json.Marshal(map[string]any{"endpoint": p.service.URL + "/" + name, "keys": p.of[name].Keys()})
	if err != nil {
		p.t.Fatal(err)
	}
	return string(text)
}

// next is what a browser shows next.
func (p *pushes) next(name string) string {
	p.t.Helper()
	p.mu.Lock()
	got := p.got[name]
	p.mu.Unlock()
	select {
	case text := <-got:
		return text
	case <-time.After(patience):
		p.t.Fatalf("%s shows nothing", name)
		return ""
	}
}

// csrf is what the page needs to change something.
func csrfFor(t *testing.T, url, cookie string) string {
	t.Helper()
	r, body := ask(t, url, visit{path: "/push", cookie: cookie})
	var a struct{ Key, CSRF string }
	if r.StatusCode != http.StatusOK || json.Unmarshal([]byte(body), &a) != nil || a.Key == "" {
		t.Fatalf("%d: %s", r.StatusCode, body)
	}
	return a.CSRF
}

// Who may see a terminal when it fails is notified, and nobody else, whatever was true
// when they have subscribed; nor who has logged out.
func TestTheAudienceOfNotifications(t *testing.T) {
	s, p := newStaff(true, "machine.laptop.ann", "observer.ann.ann", "observer.bob.bob"), pushing(t)
	h, url := serve(t, host.Options{Access: s, People: s, Pushes: p.hub})
	p.run(h)
	laptop := as(t, url, "machine.laptop.ann", "laptop", viewOptions{resume: true})
	cookies := map[string]string{}
	for _, who := range []string{"ann", "bob"} {
		cookies[who] = launchedAs(t, h, url, s.of["observer."+who+"."+who])
		status, body := press(t, url, "/push", cookies[who], csrfFor(t, url, cookies[who]),
			`{"subscription":`+p.subscription(who)+`,"choice":{"all":true,"terminals":["pty-none"],"kinds":["terminal.exited","terminal.command_finished"]}}`, nil)
		if want := `{"all":true,"terminals":[],"kinds":["terminal.command_finished","terminal.exited"]}`; status != http.StatusOK || strings.TrimSpace(body) != want {
			t.Fatalf("%s: %d, %s", who, status, body)
		}
		if got := <-p.record; got != "push "+who+": push to "+strings.TrimPrefix(p.service.URL, "https://")+": subscribed" {
			t.Errorf("recorded: %s", got)
		}
	}
	one := int64(1)
	fail := func(name string, audiences ...ahp.Audience) {
		t.Helper()
		at := "ahp-terminal:/" + name
		create := clientTerminal(at, "laptop")
		create.Name = name
		must.Do(t, laptop.call(ahp.MethodCreateTerminal, create, nil))
		for _, a := range audiences {
			must.Do(t, laptop.audience(at, a))
		}
		laptop.dispatch(at, ahp.TerminalOutput{Data: "boom\r\n"})
		laptop.dispatch(at, ahp.TerminalExited{ExitCode: &one})
		if got, want := p.next("ann"), "laptop/"+name+": exited with code 1; last line: boom"; got != want {
			t.Errorf("the owner is told %q, want %q", got, want)
		}
	}
	fail("secret")
	fail("shown", to("bob"))
	fail("withdrawn", to("bob"), ahp.Audience{})
	fail("again", to("bob"))
	for _, name := range []string{"shown", "again"} {
		if got, want := p.next("bob"), "laptop/"+name+": exited with code 1; last line: boom"; got != want {
			t.Errorf("bob is told %q, want %q", got, want)
		}
	}
	if r, _ := ask(t, url, visit{method: http.MethodPost, path: "/logout", cookie: cookies["bob"], origin: "http" + strings.TrimPrefix(url, "ws")}); r.StatusCode != http.StatusSeeOther {
		t.Fatalf("logout: %d", r.StatusCode)
	}
	fail("later", to("bob"))
	if got := <-p.record; got != "push_ended bob: push to "+strings.TrimPrefix(p.service.URL, "https://")+": the login is over" {
		t.Errorf("recorded: %s", got)
	}
	if n := len(p.got["bob"]); n != 0 {
		t.Errorf("after the logout bob is told %d times", n)
	}
}

// The page's requests need a login at the host, its page, and a host that notifies.
func TestPushRequests(t *testing.T) {
	s, p := newStaff(false, "observer.ann.ann", "guest.lent."), pushing(t)
	h, url := serve(t, host.Options{Access: s, People: s, Pushes: p.hub})
	p.run(h)
	ann := launchedAs(t, h, url, s.of["observer.ann.ann"])
	csrf := csrfFor(t, url, ann)
	choice := func(text string) string {
		return `{"subscription":` + p.subscription("ann") + `,"choice":` + text + `}`
	}
	for name, c := range map[string]struct {
		body   string
		change func(*http.Request)
		want   int
	}{
		"as the page asks": {choice("null"), nil, http.StatusOK},
		"without a cookie": {choice("null"), func(r *http.Request) { r.Header.Del("Cookie") }, http.StatusUnauthorized},
		"with a token": {choice("null"), func(r *http.Request) {
			r.Header.Del("Cookie")
			r.Header.Set("Authorization", "Bearer observer.ann.ann")
		}, http.StatusUnauthorized},
		"from no page":           {choice("null"), func(r *http.Request) { r.Header.Del("Origin") }, http.StatusForbidden},
		"from another page":      {choice("null"), func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, http.StatusForbidden},
		"without the page's key": {choice("null"), func(r *http.Request) { r.Header.Del("X-Tether-Csrf") }, http.StatusForbidden},
		"no JSON":                {"x", nil, http.StatusBadRequest},
		"too long":               {choice(`{"terminals":["` + strings.Repeat("x", 9000) + `"]}`), nil, http.StatusBadRequest},
		"another kind":           {choice(`{"all":true,"kinds":["terminal.line"]}`), nil, http.StatusBadRequest},
		"an address of a network": {strings.Replace(choice(`{"all":true,"kinds":["terminal.exited"]}`), "127.0.0.1", "10.0.0.1", 1), nil,
			http.StatusBadRequest},
		"no keys": {`{"subscription":{"endpoint":"` + p.service.URL + `"},"choice":null}`, nil, http.StatusBadRequest},
	} {
		if status, body := press(t, url, "/push", ann, csrf, c.body, c.change); status != c.want {
			t.Errorf("%s: %d, %s", name, status, body)
		}
	}
	if r, _ := ask(t, url, visit{path: "/push", token: "guest.lent."}); r.StatusCode != http.StatusForbidden {
		t.Errorf("a guest: %d", r.StatusCode)
	}
	h, url = serve(t, host.Options{Access: s, People: s})
	ann = launchedAs(t, h, url, s.of["observer.ann.ann"])
	if _, body := ask(t, url, visit{path: "/push", cookie: ann}); !strings.Contains(body, `"key":""`) {
		t.Errorf("a host that notifies nobody offers %s", body)
	}
	if r, _ := ask(t, url, visit{path: "/sw.js", host: "evil.example"}); r.StatusCode != http.StatusForbidden {
		t.Errorf("the service worker by another name: %d", r.StatusCode)
	}
	r, body := ask(t, url, visit{path: "/sw.js"})
	if r.Header.Get("Content-Type") != "text/javascript; charset=utf-8" || r.Header.Get("Cache-Control") != "no-store" || !strings.Contains(r.Header.Get("Content-Security-Policy"), "worker-src 'self'") ||
		strings.Contains(body, `"fetch"`) {
		t.Errorf("the service worker comes with %v:\n%s", r.Header, body)
	}
}

// A browser's login ends with a logout and with its token, not with the time of its
// cookie.
func TestLoginsOfNotifications(t *testing.T) {
	kept := &loginBucket{}
	h := testHost(t, host.Options{Token: secret, Logins: kept})
	own, token := sha256.Sum256([]byte(secret)), sha256.Sum256([]byte("t"))
	must.Do(t, kept.Keep(rights.Login{Token: token, Principal: rights.Principal{Name: "ann", Role: rights.RoleObserver}}))
	must.Do(t, kept.Keep(rights.Login{Token: sha256.Sum256([]byte("m")), Principal: rights.Principal{Name: "laptop", Role: rights.RoleMachine}}))
	cookie := make([]byte, sha256.Size)
	machine := sha256.Sum256([]byte("m"))
	for name, c := range map[string]struct {
		token [sha256.Size]byte
		who   string
		left  time.Duration
		want  string
	}{
		"a valid token":         {token, "ann", -time.Hour, "ann observer true"},
		"of another name":       {token, "bob", -time.Hour, "false"},
		"a revoked token":       {sha256.Sum256([]byte("r")), "ann", -time.Hour, "false"},
		"a token for no people": {machine, "laptop", -time.Hour, "false"},
		"the host's own token":  {own, "", -time.Hour, " observer true"},
		"another own token":     {token, "", -time.Hour, "false"},
		"logged out":            {token, "ann", time.Hour, "false"},
	} {
		p, ok := h.Logins().Of(login.Browser{Cookie: cookie, Token: c.token[:], Name: c.who, Until: time.Now().Add(c.left)})
		if got := fmt.Sprint(p.Name, " ", p.Role, " ", ok); got != c.want && !(c.want == "false" && !ok) {
			t.Errorf("%s: %s", name, got)
		}
	}
	if _, ok := h.Logins().Of(login.Browser{Token: []byte("short"), Until: time.Now()}); ok {
		t.Error("a short hash was taken")
	}
}
