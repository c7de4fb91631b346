package preview_test

import (
	"context"
	"crypto/sha256"
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

// A code lets one browser in, once, for one visitor at one preview, if the page brings it
// that has asked for it.
func TestCode(t *testing.T) {
	s := newStage(t, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte("the dev server")) })
	target, code := s.previews.Invite("v1", s.label, s.page, "/app/?a=1#top")
	a := s.bring(target, code, s.page)
	if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/app/?a=1#top" || len(a.Cookies()) != 1 {
		t.Fatalf("%s %q", a.Status, a.Header)
	}
	c := a.Cookies()[0]
	if c.Domain != "" || c.Path != "/" || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Name != "tether_preview_"+s.port() {
		t.Errorf("the cookie is %s", c)
	}
	if a := s.ask("GET", s.origin()+"/", nil, "Cookie", c.String()); a.StatusCode != http.StatusOK || a.text != "the dev server" {
		t.Errorf("with the cookie: %s %s", a.Status, a.text)
	}
	refused := func(what, target, code, origin string) {
		t.Helper()
		if a := s.bring(target, code, origin); a.StatusCode != http.StatusForbidden || len(a.Cookies()) != 0 {
			t.Errorf("%s: %s %q", what, a.Status, a.Header)
		}
	}
	refused("a code used twice", target, code, s.page)
	_, code = s.previews.Invite("v1", s.label, s.page, "/")
	refused("a code that another page brings", target, code, "https://evil.example")
	refused("a code that the preview's own page brings", target, code, s.origin())
	refused("a code from nowhere", target, code, "")
	other := s.previews.Label(3000, "laptop", "other")
	refused("a code of another preview", strings.Replace(target, s.label, other, 1), code, s.page)
	body, mac, _ := strings.Cut(code, ".")
	_, theirs := s.previews.Invite("v2", s.label, s.page, "/")
	for _, wrong := range []string{"", ".", body, body + ".", body + "." + mac[1:], strings.Split(theirs, ".")[0] + "." + mac, strings.Repeat("a", 4096)} {
		refused("a code that is none", target, wrong, s.page)
	}
	if a := s.ask("GET", target+"?code="+url.QueryEscape(code), nil, "Origin", s.page); a.StatusCode != http.StatusBadRequest {
		t.Errorf("a code in a URL: %s", a.Status)
	}
	if a := s.bring(target, code, s.page); a.StatusCode != http.StatusSeeOther {
		t.Errorf("the refused attempts have used up the code: %s %s", a.Status, a.text)
	}
	if n := s.machine.asked(); n != 1 {
		t.Errorf("the dev server was asked %d times", n)
	}
}

// A code and a cookie from one node count at the others. Each code counts at one of them.
func TestCodeAtAnotherNode(t *testing.T) {
	used := &sharedUsed{}
	nodes := [2]*preview.Previews{}
	for i := range nodes {
		nodes[i] = must.Get(preview.New(preview.Options{Domain: "preview.example", Secure: true, Key: [32]byte{7}, Used: used,
			Find: func(_ context.Context, visitor, label string) (*preview.Port, error) {
				if visitor != "v1" {
					return nil, &preview.Problem{Status: http.StatusForbidden, Text: visitor}
				}
				return lent(preview.Port{}, &machine{say: func(*http.Request) *http.Response {
					return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}
				}}), nil
			}}))(t)
	}
	label := nodes[0].Label(3000, "laptop")
	target, code := nodes[0].Invite("v1", label, "https://host.test", "/")
	bring := func(node *preview.Previews) *http.Response {
		r := httptest.NewRequest("POST", target, strings.NewReader(url.Values{"code": {code}}.Encode()))
		r.RequestURI = r.URL.Path
		r.URL.Scheme, r.URL.Host = "", ""
		for name, value := range map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Origin": "https://host.test", "Sec-Fetch-Dest": "document"} {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		node.ServeHTTP(w, r)
		return w.Result()
	}
	a := bring(nodes[1])
	if a.StatusCode != http.StatusSeeOther || len(a.Cookies()) != 1 {
		t.Fatalf("at another node: %s", a.Status)
	}
	if c := a.Cookies()[0]; c.Name != "__Host-tether_preview" || !c.Secure || c.Domain != "" || c.Path != "/" || !c.HttpOnly {
		t.Errorf("the cookie is %s", c)
	}
	for i, node := range nodes {
		if again := bring(node); again.StatusCode != http.StatusForbidden {
			t.Errorf("a second time, at node %d: %s", i, again.Status)
		}
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = label + ".preview.example"
		r.Header.Set("Sec-Fetch-Site", "none")
		r.AddCookie(a.Cookies()[0])
		w := httptest.NewRecorder()
		node.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Errorf("the cookie at node %d: %d %s", i, w.Code, w.Body)
		}
	}
}

// sharedUsed are codes that nodes share.
type sharedUsed struct{ all map[[sha256.Size]byte]bool }

// Use implements preview.Used.
func (u *sharedUsed) Use(code [sha256.Size]byte, _ time.Time) (bool, error) {
	if u.all == nil {
		u.all = map[[sha256.Size]byte]bool{}
	}
	first := !u.all[code]
	u.all[code] = true
	return first, nil
}

// A code is too old after a minute and a half. One from before a restart of the host
// counts as used.
func TestCodeGrowsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		make := func() *preview.Previews {
			return must.Get(preview.New(preview.Options{Domain: "preview.example", Secure: true, Find: func(context.Context, string, string) (*preview.Port, error) {
				return &preview.Port{Number: 3000}, nil
			}}))(t)
		}
		p := make()
		label := p.Label(3000)
		bring := func(p *preview.Previews, code string) int {
			r := httptest.NewRequest("POST", "/.tether/open", strings.NewReader(url.Values{"code": {code}}.Encode()))
			r.Host = label + ".preview.example"
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Origin", "https://host.test")
			r.Header.Set("Sec-Fetch-Dest", "document")
			w := httptest.NewRecorder()
			p.ServeHTTP(w, r)
			return w.Code
		}
		_, soon := p.Invite("v", label, "https://host.test", "/")
		_, late := p.Invite("v", label, "https://host.test", "/")
		_, before := p.Invite("v", label, "https://host.test", "/")
		time.Sleep(80 * time.Second)
		if status := bring(p, soon); status != http.StatusSeeOther {
			t.Errorf("after 80 s: %d", status)
		}
		if status := bring(make(), before); status != http.StatusForbidden {
			t.Errorf("after a restart: %d", status)
		}
		time.Sleep(10 * time.Second)
		if status := bring(p, late); status != http.StatusForbidden {
			t.Errorf("after 90 s: %d", status)
		}
	})
}

// A path that leads elsewhere is not followed.
func TestPathOfCode(t *testing.T) {
	s := newStage(t, func(http.ResponseWriter, *http.Request) {})
	for path, want := range map[string]string{"": "/", "/": "/", "/a b?c": "/a%20b?c", "//evil.example/": "/", "https://evil.example/": "/", "/\\evil.example": "/", "x": "/", "/a\r\nSet-Cookie: b": "/",
		"/.tether/open": "/", "/" + strings.Repeat("a", 4096): "/", "javascript:alert(1)": "/", "/%2f/evil.example": "/%2f/evil.example"} {
		target, code := s.previews.Invite("v1", s.label, s.page, path)
		if a := s.bring(target, code, s.page); a.Header.Get("Location") != want {
			t.Errorf("%q leads to %q, want %q", path, a.Header.Get("Location"), want)
		}
	}
}
