package web_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/internal/testkit/must"
)

// A guest opens a link by a click, watches the one terminal, reloads the page, and is
// told when the link ends. The page removes the secret from the address.
func TestPageOfGuests(t *testing.T) {
	oneNode(t, "links are kept by a command; host/cluster tests guests at other nodes")
	b := newBrowser(t)
	s := newSite(t, host.Options{})
	uri := s.lend(s.machine, "laptop", "dev-server")
	s.lend(s.machine, "laptop", "secret-plans")
	s.act(uri, print("\x1b[32mready\x1b[0m for guests\r\n"))
	secret := []byte("0123456789abcdef0123456789abcdef")
	sum := sha256.Sum256(secret)
	must.Do(t, s.machine.Peer().Call(t.Context(), ahp.MethodShare, ahp.ShareParams{Channel: uri, ID: "abcdefgh", SecretHash: hex.EncodeToString(sum[:]), ExpiresAt: time.Now().Add(time.Hour), Once: true}, &ahp.ShareResult{}))
	text := base64.RawURLEncoding.EncodeToString(secret)
	b.do("open", nil, nil)
	b.do("goto", args{"url": s.server.URL + "/s/#abcdefgh." + text}, nil)
	b.wait("!document.querySelector('#empty').hidden && document.querySelector('#view').hidden")
	b.shot("guest-before")
	b.do("click", args{"selector": "#open"}, nil)
	b.wait("globalThis.tetherPage?.screen().includes('ready for guests')")
	if page := b.text("location.href + document.body.innerText"); strings.Contains(page, text) || strings.Contains(page, "secret-plans") {
		t.Errorf("the page shows %.400s", page)
	}
	b.shot("guest")
	b.do("reload", nil, nil)
	b.wait("globalThis.tetherPage?.screen().includes('ready for guests')")
	s.act(uri, print("and more\r\n"))
	b.wait("tetherPage.screen().includes('and more')")
	must.Do(t, s.machine.Peer().Call(t.Context(), ahp.MethodUnshare, ahp.UnshareParams{Channel: uri, ID: "abcdefgh"}, &struct{}{}))
	b.wait("document.querySelector('#notice').textContent.includes('was ended')")
	b.do("goto", args{"url": s.server.URL + "/assets/plain.css"}, nil)
	b.do("goto", args{"url": s.server.URL + "/s/#abcdefgh." + text}, nil)
	b.do("click", args{"selector": "#open"}, nil)
	b.wait("document.querySelector('#wrong').textContent.includes('does not work')")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, head := range s.heads { // a referrer would be among them
		if strings.Contains(head, text) {
			t.Errorf("the browser sent the secret outside a body: %s", head)
		}
	}
	if len(s.heads) < 5 {
		t.Errorf("only %d requests were seen", len(s.heads))
	}
}
