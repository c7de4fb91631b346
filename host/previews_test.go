package host_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/host/preview"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// previewsHere are the previews of a host in tests, whatever its port.
func previewsHere() preview.Options {
	return preview.Options{Domain: "localhost:9187", Key: [32]byte{1}}
}

// click asks for a preview, as the host's page does. It returns the name of the preview
// and the cookie there.
func click(t *testing.T, page, path, cookie string, wanted string) (name, preview string) {
	t.Helper()
	own := "http" + strings.TrimPrefix(page, "ws")
	r, body := asJSON(t, page, path, cookie, own, wanted)
	var got struct{ URL, Code string }
	if r.StatusCode != http.StatusOK || json.Unmarshal([]byte(body), &got) != nil {
		t.Fatalf("a click is answered %s %s", r.Status, body)
	}
	at := must.Get(url.Parse(got.URL))(t)
	r, body = ask(t, page, visit{method: http.MethodPost, path: at.Path, host: at.Host, origin: own, form: url.Values{"code": {got.Code}}.Encode(), site: "cross-site", mode: "navigate", dest: "document"})
	if r.StatusCode != http.StatusSeeOther || len(r.Cookies()) != 1 {
		t.Fatalf("the code is answered %s %s", r.Status, body)
	}
	return at.Host, r.Cookies()[0].Name + "=" + r.Cookies()[0].Value
}

// asJSON posts JSON.
func asJSON(t *testing.T, page, path, cookie, origin, body string) (*http.Response, string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http"+strings.TrimPrefix(page, "ws")+path, strings.NewReader(body)))(t)
	for name, value := range map[string]string{"Content-Type": "application/json", "Origin": origin, "Cookie": cookie} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	a := must.Get(http.DefaultClient.Do(r))(t)
	defer a.Body.Close()
	return a, string(must.Get(io.ReadAll(a.Body))(t))
}

func wantPort(port int) string {
	return fmt.Sprintf(`{"terminal":%q,"port":%d}`, host.IDOf(webURI), port)
}

// A click at the page shows a port. Neither reaches the page's doors from there, nor the
// doors the port.
func TestPreviewsAreApart(t *testing.T) {
	s := newStaff(true, "machine.laptop.ann", "observer.screen.ann", "observer.other.bob")
	h, page := serve(t, host.Options{Access: s, People: s, Previews: previewsHere()})
	l := lendPorts(t, page, "machine.laptop.ann", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "dev server %s %s %s %q", r.Host, r.Header.Get(ahp.PortsPort), r.URL, r.Header["Cookie"])
	})
	l.opens(ahp.LentPort{Port: 3000, SinceMs: 7}, ahp.LentPort{Port: 4000, SinceMs: 7})
	login := launchedAs(t, h, page, s.of["observer.screen.ann"])
	web, cookie := click(t, page, "/previews", login, wantPort(3000))
	api, other := click(t, page, "/previews", login, wantPort(4000))
	for _, path := range []string{"/", "/login", "/mcp", "/events", "/healthz", "/s/state", "/device/v1/identity", "/a//b/../c"} {
		if r, body := ask(t, page, visit{path: path, host: web, cookie: login + "; " + cookie, site: "same-origin"}); r.StatusCode != http.StatusOK || body != "dev server localhost:3000 3000 "+path+" []" {
			t.Errorf("%s: %s %s", path, r.Status, body)
		}
	}
	for what, v := range map[string]visit{
		"the page's cookie":     {host: web, cookie: login, site: "same-origin"},
		"the other's cookie":    {host: web, cookie: other, site: "same-origin"},
		"the other's page":      {host: api, cookie: other, origin: "http://" + web, site: "cross-site"},
		"the other's image":     {host: api, cookie: other, site: "same-site", mode: "no-cors", dest: "image"},
		"the page's own script": {host: web, cookie: cookie, origin: "http" + strings.TrimPrefix(page, "ws"), site: "cross-site"},
	} {
		v.path = "/"
		if r, body := ask(t, page, v); r.StatusCode != http.StatusForbidden || strings.Contains(body, "dev server") {
			t.Errorf("with %s: %s %s", what, r.Status, body)
		}
	}
	// The other way: a page of the preview's asks the host, and the browser adds the
	// cookie.
	for _, path := range []string{"/", "/plain", "/events", "/previews", "/terminals/" + host.IDOf(webURI) + ".txt", "/people", "/people/entries", "/launch", "/login", "/logout", "/mcp", "/s/state", "/s/open", "/s/preview", "/push"} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodOptions} {
			for _, v := range []visit{{origin: "http://" + web, site: "cross-site"}, {origin: "null", site: "cross-site"}, {site: "same-site", mode: "no-cors", dest: "script"}, {site: "cross-site", mode: "navigate", dest: "iframe"}} {
				v.method, v.path, v.cookie = method, path, login
				r, body := ask(t, page, v)
				if r.StatusCode < http.StatusBadRequest || r.Header.Get("Access-Control-Allow-Origin") != "" || len(r.Cookies()) != 0 {
					t.Errorf("%s %s of %+v: %s %.100s", method, path, v, r.Status, body)
				}
			}
		}
	}
	q := must.Get(http.NewRequest(http.MethodGet, "http"+strings.TrimPrefix(page, "ws")+"/", nil))(t)
	for name, value := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==", "Origin": "http://" + web, "Cookie": login} {
		q.Header.Set(name, value)
	}
	a := must.Get(http.DefaultTransport.RoundTrip(q))(t)
	if a.Body.Close(); a.StatusCode != http.StatusForbidden {
		t.Errorf("a WebSocket of the preview's at the host: %s", a.Status)
	}
	if r, _ := ask(t, page, visit{path: "/", cookie: login}); !strings.Contains(r.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") || !strings.Contains(r.Header.Get("Content-Security-Policy"), "form-action 'self' http://*.localhost:9187;") {
		t.Errorf("the page's policy is %s", r.Header.Get("Content-Security-Policy"))
	}
}

// Only people who see the terminal get a code, from the page, for a port that is lent.
func TestClicks(t *testing.T) {
	s := newStaff(true, "machine.laptop.ann", "observer.screen.ann", "observer.other.bob")
	h, page := serve(t, host.Options{Access: s, People: s, Previews: previewsHere()})
	l := lendPorts(t, page, "machine.laptop.ann", func(http.ResponseWriter, *http.Request) {})
	l.opens(ahp.LentPort{Port: 3000})
	l.call(ahp.MethodAudience, ahp.AudienceParams{Channel: webURI})
	ann, bob := launchedAs(t, h, page, s.of["observer.screen.ann"]), launchedAs(t, h, page, s.of["observer.other.bob"])
	own := "http" + strings.TrimPrefix(page, "ws")
	click(t, page, "/previews", ann, wantPort(3000))
	for what, c := range map[string]struct {
		cookie, origin, body string
		status               int
	}{
		"nobody":             {"", own, wantPort(3000), http.StatusUnauthorized},
		"who sees it not":    {bob, own, wantPort(3000), http.StatusNotFound},
		"another port":       {ann, own, wantPort(3001), http.StatusNotFound},
		"no terminal":        {ann, own, `{"terminal":"pty-none","port":3000}`, http.StatusNotFound},
		"another page":       {ann, "http://evil.example", wantPort(3000), http.StatusForbidden},
		"a page of this":     {ann, "http://localhost:5173", wantPort(3000), http.StatusForbidden},
		"no page":            {ann, "", wantPort(3000), http.StatusBadRequest},
		"no JSON":            {ann, own, `{"terminal":`, http.StatusBadRequest},
		"too much":           {ann, own, `{"terminal":"` + strings.Repeat("x", 1<<16) + `"}`, http.StatusBadRequest},
		"a number too large": {ann, own, wantPort(1 << 40), http.StatusNotFound},
	} {
		if r, body := asJSON(t, page, "/previews", c.cookie, c.origin, c.body); r.StatusCode != c.status || strings.Contains(body, "code") {
			t.Errorf("%s: %s %s", what, r.Status, body)
		}
	}
	_, off := serve(t, host.Options{NoPreviews: "it has no name for them"})
	if r, body := asJSON(t, off, "/previews", "", "http"+strings.TrimPrefix(off, "ws"), wantPort(3000)); r.StatusCode != http.StatusNotFound || !strings.Contains(body, "it has no name for them") {
		t.Errorf("without previews: %s %s", r.Status, body)
	}
}

// Whatever ends the right to a preview, ends a download under way, and is said to the
// next request.
func TestPreviewsFollowRights(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(s *staff, h *host.Host, l *lender, page, login string)
		status int
	}{
		"a logout": {func(_ *staff, _ *host.Host, l *lender, page, login string) {
			r, _ := ask(l.t, page, visit{method: http.MethodPost, path: "/logout", cookie: login, origin: "http" + strings.TrimPrefix(page, "ws")})
			if r.StatusCode != http.StatusSeeOther {
				l.t.Errorf("the logout: %s", r.Status)
			}
		}, http.StatusForbidden},
		"the token is revoked": {func(s *staff, _ *host.Host, _ *lender, _, _ string) {
			s.ends["observer.screen.bob"](errors.New("revoked"))
		}, http.StatusForbidden},
		"the audience": {func(_ *staff, _ *host.Host, l *lender, _, _ string) {
			l.call(ahp.MethodAudience, ahp.AudienceParams{Channel: webURI})
		}, http.StatusForbidden},
		"unlend":      {func(_ *staff, _ *host.Host, l *lender, _, _ string) { l.opens() }, http.StatusNotFound},
		"a cut link":  {func(_ *staff, _ *host.Host, l *lender, _, _ string) { l.conn.Close() }, http.StatusServiceUnavailable},
		"a new loan":  {func(_ *staff, _ *host.Host, l *lender, _, _ string) { l.opens(ahp.LentPort{Port: 3000, SinceMs: 8}) }, http.StatusNotFound},
		"the program": {func(_ *staff, _ *host.Host, l *lender, _, _ string) { l.exit() }, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStaff(true, "machine.laptop.ann", "observer.screen.bob")
			h, page := serve(t, host.Options{Access: s, People: s, Previews: previewsHere()})
			l := lendPorts(t, page, "machine.laptop.ann", download)
			l.opens(ahp.LentPort{Port: 3000, SinceMs: 7})
			login := launchedAs(t, h, page, s.of["observer.screen.bob"])
			at, cookie := click(t, page, "/previews", login, wantPort(3000))
			r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "http"+strings.TrimPrefix(page, "ws")+"/large", nil))(t)
			r.Host = at
			r.Header.Set("Cookie", cookie)
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			a := must.Get(http.DefaultClient.Do(r))(t)
			defer a.Body.Close()
			must.Get(io.ReadFull(a.Body, make([]byte, 100<<10)))(t)
			c.end(s, h, l, page, login)
			ended := make(chan error, 1)
			go func() { _, err := io.Copy(io.Discard, a.Body); ended <- err }()
			select {
			case err := <-ended:
				if err == nil {
					t.Error("the download has an end")
				}
			case <-time.After(testkit.Patience):
				t.Fatal("the download goes on")
			}
			if again, body := ask(t, page, visit{path: "/", host: at, cookie: cookie, site: "same-origin"}); again.StatusCode != c.status {
				t.Errorf("again: %s %s", again.Status, body)
			}
		})
	}
}

// A lending keeps its name while its machine comes back, at a restarted host, too. A new
// one has another.
func TestNamesOfLendings(t *testing.T) {
	s := newStaff(true, "machine.laptop.ann", "observer.screen.ann")
	at := func(o host.Options, since int64) (name, cookie, page string, h *host.Host, l *lender) {
		h, page = serve(t, o)
		l = lendPorts(t, page, "machine.laptop.ann", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "dev server") })
		l.opens(ahp.LentPort{Port: 3000, SinceMs: since})
		name, cookie = click(t, page, "/previews", launchedAs(t, h, page, s.of["observer.screen.ann"]), wantPort(3000))
		return name, cookie, page, h, l
	}
	o := host.Options{Access: s, People: s, Previews: previewsHere()}
	name, cookie, page, _, l := at(o, 7)
	l.conn.Close()
	lendPorts(t, page, "machine.laptop.ann", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "back") }).opens(ahp.LentPort{Port: 3000, SinceMs: 7})
	if r, body := ask(t, page, visit{path: "/", host: name, cookie: cookie, site: "same-origin"}); r.StatusCode != http.StatusOK || body != "back" {
		t.Errorf("after the machine is back: %s %s", r.Status, body)
	}
	if again, _, _, _, _ := at(o, 7); again != name {
		t.Errorf("at a restarted host: %s, before %s", again, name)
	}
	if again, _, _, _, _ := at(o, 8); again == name {
		t.Errorf("a new lending has the name of the one before, %s", name)
	}
	o.Previews.Key[0]++
	if again, _, _, _, _ := at(o, 7); again == name {
		t.Errorf("another host has the name %s", name)
	}
}

// A guest with a link for a port sees that and nothing else, with a click, as long as the
// link lasts.
func TestGuestsOfAPort(t *testing.T) {
	s := newStaff(true, "machine.laptop.ann")
	_, page := serve(t, host.Options{Access: s, People: s, Previews: previewsHere()})
	l := lendPorts(t, page, "machine.laptop.ann", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "dev server ", r.Header.Get(ahp.PortsReader))
	})
	l.opens(ahp.LentPort{Port: 3000, SinceMs: 7, GuestsOnly: true}, ahp.LentPort{Port: 4000, SinceMs: 7})
	text, hash := linkSecret()
	share := ahp.ShareParams{Channel: webURI, ID: shareID, SecretHash: hash, ExpiresAt: time.Now().Add(time.Hour), Port: 3000}
	l.call(ahp.MethodShare, share)
	share.Port = 0
	if err := l.conn.Peer().Call(t.Context(), ahp.MethodShare, share, nil); err == nil {
		t.Error("the link was made one to the terminal")
	}
	own := "http" + strings.TrimPrefix(page, "ws")
	g, status, cookies, body := openLink(t, page, shareID, text, http.Header{"Origin": {own}})
	if status != http.StatusOK || len(cookies) != 1 || g.Row != nil || !strings.Contains(body, `"port":3000`) || strings.Contains(body, "laptop") {
		t.Fatalf("opened: %d %s", status, body)
	}
	login := cookies[0].Name + "=" + cookies[0].Value
	if _, status, _, body := openLink(t, page, shareID, text, nil); status != http.StatusForbidden || strings.Contains(body, "token") {
		t.Errorf("a program opens it: %d %s", status, body)
	}
	for _, path := range []string{"/s/terminal", "/terminals/" + host.IDOf(webURI) + ".txt", "/events", "/plain"} {
		if r, body := ask(t, page, visit{path: path, cookie: login}); r.StatusCode < http.StatusBadRequest {
			t.Errorf("%s: %s %s", path, r.Status, body)
		}
	}
	if r, body := asJSON(t, page, "/previews", login, own, wantPort(3000)); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("as a login: %s %s", r.Status, body)
	}
	for _, wanted := range []string{`{}`, wantPort(4000)} {
		at, cookie := click(t, page, "/s/preview", login, wanted)
		if r, body := ask(t, page, visit{path: "/", host: at, cookie: cookie, site: "same-origin"}); r.StatusCode != http.StatusOK || !strings.HasPrefix(at, "3000-") || body != `dev server {"guest":"`+shareID+`"}` {
			t.Errorf("%s at %s: %s %s", wanted, at, r.Status, body)
		}
	}
	at, cookie := click(t, page, "/s/preview", login, `{}`)
	l.call(ahp.MethodUnshare, ahp.UnshareParams{Channel: webURI, ID: shareID})
	if r, body := ask(t, page, visit{path: "/", host: at, cookie: cookie, site: "same-origin"}); r.StatusCode != http.StatusForbidden {
		t.Errorf("after the link: %s %s", r.Status, body)
	}
	if r, _ := asJSON(t, page, "/s/preview", login, own, `{}`); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("a click after the link: %s", r.Status)
	}
	_, off := serve(t, host.Options{Access: s, People: s})
	m := lendPorts(t, off, "machine.laptop.ann", func(http.ResponseWriter, *http.Request) {})
	share.Port = 3000
	if err := m.conn.Peer().Call(t.Context(), ahp.MethodShare, share, nil); err == nil || !strings.Contains(err.Error(), "no previews") {
		t.Errorf("at a host without previews: %v", err)
	}
}
