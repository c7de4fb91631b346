package web_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"testing"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/host/rights"
)

// The browser's console says nothing while all is well, on any page of the host: before
// the login and after it, by token and by link, after a reload, at a terminal, and at a
// guest's.
func TestPageLeavesTheConsoleEmpty(t *testing.T) {
	oneNode(t, "links are kept by a command; host/cluster tests guests at other nodes")
	b := newBrowser(t)
	s := newSite(t, host.Options{Register: &register{}, People: &team{roster: &rights.Roster{}}})
	uri := s.lend(s.machine, "laptop", "dev-server")
	s.act(uri, print("ready\r\nmain.c:3:5: error: no such type\r\n"))
	secret := []byte("0123456789abcdef0123456789abcdef")
	sum := sha256.Sum256(secret)
	if err := s.machine.Peer().Call(t.Context(), ahp.MethodShare, ahp.ShareParams{Channel: uri, ID: "abcdefgh", SecretHash: hex.EncodeToString(sum[:]), ExpiresAt: time.Now().Add(time.Hour)}, &ahp.ShareResult{}); err != nil {
		t.Fatal(err)
	}
	said := 0
	quiet := func(where string) {
		t.Helper()
		// A browser with a window asks for an icon, the headless one does not.
		b.wait("Promise.all(['/favicon.ico', document.querySelector('link[rel=icon]')?.href ?? '/favicon.ico'].map(url => fetch(url)))" +
			".then(all => all.every(r => r.ok && r.headers.get('Content-Type') === 'image/svg+xml'))")
		var now seen
		b.do("seen", nil, &now)
		for _, e := range now.Errors[said:] {
			t.Errorf("%s: the console says %s", where, e)
		}
		said = len(now.Errors)
	}
	visit := func(path, ready string) {
		t.Helper()
		b.do("goto", args{"url": s.server.URL + path}, nil)
		b.wait(ready)
		quiet(path)
	}
	const live = "document.querySelector('#link')?.dataset.state === 'up'"
	b.do("open", nil, nil)
	visit("/", "document.querySelector('#token')")
	b.do("type", args{"text": token}, nil)
	b.do("key", args{"key": "Enter"}, nil)
	b.wait(live)
	quiet("the login by token")
	b.do("reload", nil, nil)
	b.wait(live)
	quiet("the reload")
	s.choose(b, "dev-server")
	for key, shown := range map[string]string{"c": "commands", "p": "problems", "s": "screen"} {
		b.do("key", args{"key": key}, nil)
		b.wait("document.querySelector('#" + shown + "').checkVisibility()")
		quiet("the terminal's " + shown)
	}
	b.do("reload", nil, nil)
	b.wait(live + " && !document.querySelector('#view').hidden")
	quiet("the reload at a terminal")
	visit("/people", "document.querySelector('#who').textContent.includes('everybody')")
	visit("/plain", "document.querySelector('a').textContent === 'dev-server'")
	b.do("click", args{"selector": "li a"}, nil)
	b.wait("document.body.innerText.includes('ready')")
	b.do("goto", args{"url": s.server.URL}, nil)
	b.wait(live)
	b.do("click", args{"selector": "footer form button"}, nil)
	b.wait("document.querySelector('#token')")
	quiet("the logout")
	s.login(b)
	quiet("the login by link")
	b.do("open", nil, nil)
	visit("/s/#abcdefgh."+base64.RawURLEncoding.EncodeToString(secret), "document.querySelector('#open')?.checkVisibility()")
	b.do("click", args{"selector": "#open"}, nil)
	b.wait("globalThis.tetherPage?.screen().includes('ready')")
	quiet("the guest's terminal")
	b.do("reload", nil, nil)
	b.wait("globalThis.tetherPage?.screen().includes('ready')")
	quiet("the guest's reload")
}
