package web_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"testing"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit/must"
)

// park announces, as a machine, a terminal that the host may keep. former, if not empty,
// is the URI that the terminal had before.
func (s *site) park(c *client.Conn, uri, former, name string) {
	s.t.Helper()
	cols, rows := int64(80), int64(24)
	meta := ahp.AddPark(ahp.NewTerminalMeta(former, false), ahp.NewPark(time.Hour, -1))
	must.Do(s.t, c.CreateTerminal(s.t.Context(), ahp.CreateTerminalParams{Channel: uri, Claim: ahp.ClientClaim("laptop-client"), Name: name,
		Cwd: "file:///home/me/shop", Cols: &cols, Rows: &rows, ExecutionTarget: ahp.TargetClient, Meta: meta}))
}

// back connects the machine again.
func (s *site) back() { s.machine = s.join("laptop") }

// The page shows a parked terminal, which AHP does not know, with its last state, to
// people who watched it before and to people who come later. When the machine is back,
// the page continues under the same address. When the host does not keep the terminal any
// more, the page says so and keeps its last state.
func TestPageOfAParkedTerminal(t *testing.T) {
	b := newBrowser(t)
	s := newSite(t, host.Options{Grace: time.Millisecond, Park: time.Hour})
	const first, second = "ahp-terminal:/first", "ahp-terminal:/second"
	s.park(s.machine, first, "", "dev-server")
	s.act(first, append([]ahp.Action{ahp.TerminalCommandDetectionAvailable{}, print("\x1b[32mready\x1b[0m\r\n")}, command("cmd-1", "make", "main.c:3:1: error: broken\r\n", 2, 10)...)...)
	b.do("open", nil, nil)
	s.login(b)
	s.choose(b, "dev-server")
	b.wait("tetherPage.screen().includes('broken')")
	address := b.text("location.hash")
	away := "document.querySelector('#state').textContent.startsWith('away since') && document.querySelector('#notice').textContent.includes('The machine is away since') && tetherPage.screen().includes('broken')"
	s.machine.Close()
	b.wait(away)
	b.wait("document.querySelector('nav').innerText.includes('away since')")
	b.shot("parked")
	b.do("reload", nil, nil)
	b.wait("document.querySelector('#link')?.dataset.state === 'up'")
	b.wait(away)
	b.do("click", args{"selector": "#tab-commands"}, nil)
	b.wait("document.querySelector('#commands').innerText.includes('make')")
	b.do("click", args{"selector": "#tab-problems"}, nil)
	b.wait("document.querySelector('#problems').innerText.includes('broken')")
	b.do("click", args{"selector": "#tab-screen"}, nil)
	s.back()
	s.park(s.machine, second, first, "dev-server")
	s.act(second, print("and more\r\n"))
	b.wait("document.querySelector('#state').textContent === 'running' && document.querySelector('#notice').hidden && tetherPage.screen().includes('broken') && tetherPage.screen().includes('and more')")
	if again := b.text("location.hash"); again != address {
		t.Errorf("its address was %s and is %s", address, again)
	}
	s.machine.Close()
	b.wait(away)
	s.back()
	must.Do(t, s.machine.DisposeTerminal(context.Background(), second))
	b.wait("document.querySelector('#notice').textContent.includes('is gone from the host') && tetherPage.screen().includes('and more')")
	b.clean(s.server.URL)
}

// A guest sees the shared terminal while its machine is away, and watches it again when
// the machine is back.
func TestPageOfGuestsOfAParkedTerminal(t *testing.T) {
	oneNode(t, "links are kept by a command; host/cluster tests guests at other nodes")
	b := newBrowser(t)
	s := newSite(t, host.Options{Grace: time.Millisecond, Park: time.Hour})
	const first, second = "ahp-terminal:/first", "ahp-terminal:/second"
	until := time.Now().Add(time.Hour)
	secret := []byte("0123456789abcdef0123456789abcdef")
	sum := sha256.Sum256(secret)
	share := func(uri string) {
		t.Helper()
		must.Do(t, s.machine.Peer().Call(t.Context(), ahp.MethodShare, ahp.ShareParams{Channel: uri, ID: "abcdefgh", SecretHash: hex.EncodeToString(sum[:]), ExpiresAt: until}, &ahp.ShareResult{}))
	}
	s.park(s.machine, first, "", "dev-server")
	s.act(first, print("ready for guests\r\n"))
	share(first)
	b.do("open", nil, nil)
	b.do("goto", args{"url": s.server.URL + "/s/#abcdefgh." + base64.RawURLEncoding.EncodeToString(secret)}, nil)
	b.do("click", args{"selector": "#open"}, nil)
	b.wait("globalThis.tetherPage?.screen().includes('ready for guests')")
	away := "document.querySelector('#state').textContent.startsWith('away since') && globalThis.tetherPage?.screen().includes('ready for guests')"
	s.machine.Close()
	b.wait(away)
	b.do("reload", nil, nil)
	b.wait(away)
	b.shot("guest-parked")
	s.back()
	s.park(s.machine, second, first, "dev-server")
	share(second)
	s.act(second, print("and more\r\n"))
	b.wait("document.querySelector('#state').textContent === 'running' && tetherPage.screen().includes('ready for guests') && tetherPage.screen().includes('and more')")
}
