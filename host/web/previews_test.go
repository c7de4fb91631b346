package web_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// shops are dev servers, one per port: a page, its source, and a service worker.
func shops(w http.ResponseWriter, r *http.Request) {
	port := r.Header.Get(ahp.PortsPort)
	switch r.URL.Path {
	case "/":
		w.Header().Set("Content-Type", "text/html")
		w.Header().Add("Set-Cookie", "mine="+port+"; Path=/")
		w.Header().Add("Set-Cookie", "wide="+port+"; Domain=localhost; Path=/")
		fmt.Fprintf(w, `<!doctype html><title>shop %s</title><script src="/secret.js"></script><p id="cookie">%s</p>`, port, r.Header.Get("Cookie"))
	case "/secret.js":
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprintf(w, "globalThis.secret = 'source of %s';", port)
	case "/worker.js":
		w.Header().Set("Content-Type", "text/javascript")
		_, _ = io.WriteString(w, "onfetch = e => { if (e.request.mode === 'navigate') e.respondWith(new Response('<title>left behind</title>', {headers: {'Content-Type': 'text/html'}})) };")
	}
}

// opened lends a terminal with ports.
func (s *site) opened(ports ...ahp.LentPort) *client.Conn {
	s.t.Helper()
	near, far := testkit.Channels()
	go func() { _ = s.owner.ServeChannel(context.Background(), far) }() // ends with the host
	c := must.Get(client.ConnectChannel(s.t.Context(), near,
		client.Options{ClientID: "desk-client", Info: ahp.Implementation{Name: "test", Title: "desk"}, Meta: ahp.ClientMarker{Ports: true}.Meta(), OnStream: testkit.ServeStreams(s.t, http.HandlerFunc(shops))}))(s.t)
	s.t.Cleanup(func() { c.Close() })
	must.Do(s.t, c.CreateTerminal(s.t.Context(), ahp.CreateTerminalParams{Channel: "ahp-terminal:/desk-shop", Claim: ahp.ClientClaim("desk-client"), Name: "shop",
		ExecutionTarget: ahp.TargetClient, Meta: ahp.AddPorts(nil, ports)}))
	return c
}

// A guest's link for one port leads to it, and the link's page shows nothing else.
func TestGuestsOfAPort(t *testing.T) {
	oneNode(t, "links are kept by a command; host/cluster tests guests at other nodes")
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	machine := s.opened(ahp.LentPort{Port: 3000, SinceMs: 7}, ahp.LentPort{Port: 4000, SinceMs: 7})
	secret := []byte("0123456789abcdef0123456789abcdef")
	sum := sha256.Sum256(secret)
	must.Do(t, machine.Peer().Call(t.Context(), ahp.MethodShare, ahp.ShareParams{Channel: "ahp-terminal:/desk-shop", ID: "abcdefgh", SecretHash: hex.EncodeToString(sum[:]), ExpiresAt: time.Now().Add(time.Hour), Once: true, Port: 4000}, &ahp.ShareResult{}))
	link := s.server.URL + "/s/#abcdefgh." + base64.RawURLEncoding.EncodeToString(secret)
	b.do("open", nil, nil)
	for i := range 2 { // the second time without a click, since the browser is known
		b.do("goto", args{"url": link}, nil)
		if i == 0 {
			b.do("click", args{"selector": "#open"}, nil)
		}
		b.wait("document.title === 'shop 4000' && location.hostname.endsWith('.localhost')")
	}
	must.Do(t, machine.Peer().Call(t.Context(), ahp.MethodUnshare, ahp.UnshareParams{Channel: "ahp-terminal:/desk-shop", ID: "abcdefgh"}, &struct{}{}))
	b.do("goto", args{"url": b.text("location.href")}, nil)
	b.wait("document.querySelector('#problem')?.textContent.includes('the link, has ended')")
}

// A click shows a lent port. Its page reaches neither the host's page nor another
// preview, and leaves nothing to a later lending. It comes back by itself.
func TestPreviews(t *testing.T) {
	oneNode(t, "a double of a machine is at the node itself; host/cluster tests ports at other nodes")
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	machine := s.opened(ahp.LentPort{Port: 3000, SinceMs: 7}, ahp.LentPort{Port: 4000, SinceMs: 7})
	b.do("open", nil, nil)
	s.login(b)
	s.choose(b, "shop")
	b.wait("document.querySelectorAll('#facts .port').length === 2")
	b.shot("previews")
	for i, port := range []string{"3000", "4000"} {
		b.do("window", args{"n": 0}, nil)
		b.do("eval", args{"js": "[...document.querySelectorAll('#facts .port')].find(e => e.textContent.includes('" + port + "')).click()"}, nil)
		b.do("window", args{"n": i + 1}, nil)
		b.wait("document.title === 'shop " + port + "'")
		if got := b.text("location.href + ' ' + globalThis.secret + ' ' + (opener === null)"); !strings.HasPrefix(got, "http://"+port+"-") || !strings.HasSuffix(got, "/ source of "+port+" true") {
			t.Errorf("the preview is %s", got)
		}
	}
	evil := b.text("location.origin")
	b.do("window", args{"n": 1}, nil)
	shop := b.text("location.origin")
	b.do("reload", nil, nil)
	if got := b.text("document.querySelector('#cookie').textContent + ' | ' + document.cookie"); got != "mine=3000 | mine=3000" {
		t.Errorf("cookies of the shop are %q", got)
	}
	b.do("eval", args{"js": "localStorage.setItem('left', 'behind'); navigator.serviceWorker.register('/worker.js').then(() => navigator.serviceWorker.ready).then(() => 1)"}, nil)

	b.do("window", args{"n": 2}, nil)
	if got := b.text("document.cookie = 'tossed=1; Domain=localhost'; document.cookie"); got != "mine=4000" {
		t.Errorf("cookies of the other preview are %q", got)
	}
	for what, js := range map[string]string{
		"reads the other's page":    "fetch('SHOP/', {credentials: 'include'}).then(a => a.text())",
		"reads the other's source":  "new Promise((ok, no) => { const e = document.createElement('script'); e.src = 'SHOP/secret.js'; e.onload = () => ok(globalThis.secret); e.onerror = no; document.head.append(e) })",
		"shows the other's picture": "new Promise((ok, no) => { const e = new Image(); e.src = 'SHOP/secret.js'; e.onload = ok; e.onerror = no })",
		"speaks with the other":     "new Promise((ok, no) => { const s = new WebSocket('SHOP/'.replace('http', 'ws')); s.onopen = ok; s.onerror = no })",
		"frames the other":          "new Promise((ok, no) => { const f = document.createElement('iframe'); f.src = 'SHOP/'; f.onload = () => { try { ok(f.contentDocument.title) } catch (e) { no(e) } }; document.body.append(f) })",
		"reads the host's list":     "fetch('PAGE/plain', {credentials: 'include'}).then(a => a.text())",
		"asks the host for a code":  "fetch('PAGE/previews', {method: 'POST', credentials: 'include', headers: {'Content-Type': 'application/json'}, body: '{}'}).then(a => a.text())",
		"speaks with the host":      "new Promise((ok, no) => { const s = new WebSocket('PAGE/'.replace('http', 'ws')); s.onopen = ok; s.onerror = no })",
		"frames the host":           "new Promise((ok, no) => { const f = document.createElement('iframe'); f.src = 'PAGE/'; f.onload = () => { try { ok(f.contentDocument.title) } catch (e) { no(e) } }; document.body.append(f) })",
	} {
		js = strings.NewReplacer("SHOP", shop, "PAGE", s.server.URL).Replace(js)
		if got := b.text("(" + js + ").then(v => 'done: ' + String(v), () => 'refused')"); got != "refused" {
			t.Errorf("a page that %s: %s", what, got)
		}
	}
	var cookies []struct{ Name, Value, Domain string }
	b.do("cookies", nil, &cookies)
	for _, c := range cookies {
		if strings.HasPrefix(c.Domain, ".") || c.Name == "wide" || c.Name == "tossed" {
			t.Errorf("%s of %s is for more than one name", c.Name, c.Domain)
		}
	}

	// The machine goes away, and comes back with the same lending.
	machine.Close()
	b.do("goto", args{"url": evil + "/"}, nil)
	b.wait("document.querySelector('#problem') !== null")
	b.shot("preview-away")
	s.opened(ahp.LentPort{Port: 3000, SinceMs: 9}, ahp.LentPort{Port: 4000, SinceMs: 7})
	b.wait("document.title === 'shop 4000'")

	// The other port was lent anew, so what is left behind meets nobody.
	b.do("goto", args{"url": shop + "/"}, nil)
	b.wait("document.title === 'left behind'")
	b.do("window", args{"n": 0}, nil)
	b.wait("document.querySelectorAll('#facts .port').length === 2")
	b.do("click", args{"selector": "#facts .port"}, nil)
	b.do("window", args{"n": 3}, nil)
	b.wait("document.title === 'shop 3000'")
	if got := b.text("location.origin"); got == shop || b.text("navigator.serviceWorker.getRegistrations().then(all => String(localStorage.getItem('left')) + all.length)") != "null0" {
		t.Errorf("the new lending is at %s, the one before was at %s", got, shop)
	}
}
