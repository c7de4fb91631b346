package host_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/host/rights"
	"tether/host/share"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/jsonrpc/wsconn"
)

// drawer is a share.Store in memory.
type drawer struct {
	away bool // nothing can be stored
	mu   sync.Mutex
	all  []share.Link
}

// Kept implements share.Store.
func (d *drawer) Kept() []share.Link {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.all)
}

// Moved implements share.Store.
func (d *drawer) Moved() bool { return false }

// Change implements share.Store.
func (d *drawer) Change(do func([]share.Link) []share.Link) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away {
		return errAway
	}
	d.all = do(slices.Clone(d.all))
	return nil
}

const shareID = "abcdefgh"

// linkSecret is the secret of the links in tests, as the fragment has it, and its hash.
func linkSecret() (text, hash string) {
	secret := make([]byte, 32)
	sum := sha256.Sum256(secret)
	return base64.RawURLEncoding.EncodeToString(secret), hex.EncodeToString(sum[:])
}

// shares makes a link for a terminal.
func (v *viewer) shares(uri, id string, once bool, until time.Time) error {
	_, hash := linkSecret()
	return v.call(ahp.MethodShare, ahp.ShareParams{Channel: uri, ID: id, SecretHash: hash, ExpiresAt: until, Once: once}, nil)
}

// guest is the answer for a guest.
type guest struct {
	Share, Terminal, Token string
	ExpiresMs              int64
	Row                    *struct{ Name, Machine string }
}

// openLink opens a link as a program does, or as a browser with these headers.
func openLink(t *testing.T, url, id, secret string, header http.Header) (g guest, status int, cookies []*http.Cookie, text string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http"+strings.TrimPrefix(url, "ws")+"/s/open", strings.NewReader(fmt.Sprintf(`{"id":%q,"secret":%q}`, id, secret))))(t)
	r.Header.Set("Content-Type", "application/json")
	for name, values := range header {
		r.Header[name] = values
	}
	r.Host = header.Get("Host")
	answer := must.Get(http.DefaultClient.Do(r))(t)
	defer answer.Body.Close()
	body := must.Get(io.ReadAll(answer.Body))(t)
	if answer.StatusCode == http.StatusOK {
		if err := json.Unmarshal(body, &g); err != nil {
			t.Fatalf("%s: %v", body, err)
		}
	}
	return g, answer.StatusCode, answer.Cookies(), string(body)
}

// A guest watches the one terminal of the link, and nothing else is there for them at any
// door.
func TestGuestsSeeOneTerminal(t *testing.T) {
	_, url := serve(t, host.Options{Token: secret, ShareURL: "https://host.example/s/#"})
	machine := dial(t, url+"?tkn="+secret, "laptop", viewOptions{})
	machine.create(uri)
	machine.output(uri, "for the guest\n", 0)
	other := uri + "-other"
	machine.create(other)
	machine.output(other, "not for guests\n", 0)
	must.Do(t, machine.shares(uri, shareID, false, time.Now().Add(time.Hour)))
	secretText, _ := linkSecret()
	r, err := http.Post("http"+strings.TrimPrefix(url, "ws")+"/s/open", "application/json", strings.NewReader(`{"id":"`+shareID+`","secret":"`+secretText+`","x":"\ud800"}`))
	if err != nil || r.StatusCode < 400 || r.Body.Close() != nil {
		t.Fatalf("text that is not Unicode: %v, %v", r, err)
	}
	g, status, cookies, _ := openLink(t, url, shareID, secretText, nil)
	if status != http.StatusOK || g.Terminal != uri || g.Share != shareID || g.Token == "" || len(cookies) != 0 || g.Row == nil || g.ExpiresMs <= 0 {
		t.Fatalf("%d: %+v, cookies %v", status, g, cookies)
	}
	v := dial(t, url+"?tkn="+g.Token, "guest", viewOptions{subs: []string{ahp.RootURI, uri, other}})
	defer v.close()
	v.await("the guest sees the terminal", func() bool { return len(v.root.Terminals) == 1 && v.root.Terminals[0].Resource == uri })
	for what, err := range map[string]error{
		"another terminal": v.call(ahp.MethodSubscribe, ahp.SubscribeParams{Channel: other}, nil),
		"lending":          v.call(ahp.MethodCreateTerminal, clientTerminal("ahp-terminal:/x", "guest"), nil),
		"a shell":          v.call(ahp.MethodCreateTerminal, ahp.CreateTerminalParams{Channel: "ahp-terminal:/s", Claim: ahp.ClientClaim("guest")}, nil),
		"disposal":         v.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: uri}, nil),
		"sharing on":       v.shares(uri, "bbbbbbbb", false, time.Now().Add(time.Hour)),
		"unsharing is void": func() error {
			_ = v.call(ahp.MethodUnshare, ahp.UnshareParams{Channel: uri, ID: shareID}, nil)
			if _, status, _, _ := openLink(t, url, shareID, secretText, nil); status != http.StatusOK {
				return nil
			}
			return errors.New("the link works on")
		}(),
	} {
		if err == nil {
			t.Errorf("%s: allowed", what)
		}
	}
	for path, want := range map[string]int{"/mcp": 403, "/people/entries": 403, "/terminals/" + host.IDOf(other) + ".txt": 404, "/terminals/" + host.IDOf(uri) + ".txt": 200, "/shells": 403} {
		if r, body := ask(t, url, visit{path: path, token: g.Token}); r.StatusCode != want || strings.Contains(body, "not for guests") {
			t.Errorf("%s: %d %.200s", path, r.StatusCode, body)
		}
	}
	for _, path := range []string{"/launch", "/login"} {
		if r, body := ask(t, url, visit{method: http.MethodPost, path: path, token: g.Token, form: "token=" + g.Token, origin: "http" + strings.TrimPrefix(url, "ws")}); r.StatusCode < 400 || len(r.Cookies()) != 0 {
			t.Errorf("%s: %d %.200s", path, r.StatusCode, body)
		}
	}
	must.Do(t, machine.call(ahp.MethodUnshare, ahp.UnshareParams{Channel: uri, ID: shareID}, nil))
	<-v.done // the guest's connection has ended
	if _, status, _, _ := openLink(t, url, shareID, secretText, nil); status != http.StatusForbidden {
		t.Errorf("an ended link: %d", status)
	}
	if r, _ := ask(t, url, visit{path: "/terminals/" + host.IDOf(uri) + ".txt", token: g.Token}); r.StatusCode != http.StatusForbidden {
		t.Errorf("a guest's token after the end: %d", r.StatusCode)
	}
}

// Every link that does not work is answered alike, and guessing is limited.
func TestLinksThatDoNotWork(t *testing.T) {
	var refusals atomic.Int64
	_, url := serve(t, host.Options{Token: secret, Audit: func(ev rights.AuditEvent) {
		if ev.Type == rights.AuditRefused {
			refusals.Add(1)
		}
	}})
	machine := dial(t, url+"?tkn="+secret, "laptop", viewOptions{})
	machine.create(uri)
	must.Do(t, machine.shares(uri, shareID, false, time.Now().Add(time.Hour)))
	secretText, _ := linkSecret()
	var texts []string
	for name, c := range map[string][2]string{"another secret": {shareID, secretText[1:] + "B"}, "no secret": {shareID, ""}, "half a secret": {shareID, secretText[:20]}, "another id": {"zzzzzzzz", secretText}, "no id": {"", secretText}} {
		g, status, _, text := openLink(t, url, c[0], c[1], nil)
		if status != http.StatusForbidden || g.Token != "" {
			t.Errorf("%s: %d", name, status)
		}
		texts = append(texts, text)
	}
	if n := refusals.Load(); n != 5 {
		t.Errorf("%d refusals of 5 links are on record", n)
	}
	if slices.Sort(texts); texts[0] != texts[len(texts)-1] {
		t.Errorf("answers differ: %q", texts)
	}
	refused := 0
	for range 30 {
		if _, status, _, _ := openLink(t, url, shareID, "x", nil); status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused == 0 {
		t.Error("guessing is not limited")
	}
	if _, status, _, _ := openLink(t, url, shareID, secretText+"!", nil); status != http.StatusTooManyRequests && status != http.StatusForbidden {
		t.Errorf("more than the secret: %d", status)
	}
	if g, status, _, text := openLink(t, url, shareID, secretText, nil); status != http.StatusOK || g.Token == "" {
		t.Errorf("the right link from an address that has guessed: %d %s", status, text)
	}
}

// A link for one browser lets the first one in, which may come again, and nobody else.
func TestLinkForOneBrowser(t *testing.T) {
	kept := &drawer{}
	h, url := serve(t, host.Options{Token: secret, Shares: kept})
	machine := dial(t, url+"?tkn="+secret, "laptop", viewOptions{})
	machine.create(uri)
	must.Do(t, machine.shares(uri, shareID, true, time.Now().Add(time.Hour)))
	secretText, _ := linkSecret()
	page := http.Header{"Origin": {"http" + strings.TrimPrefix(url, "ws")}}
	for _, preview := range []string{"/s/", "/s/state"} { // programs that look at links
		ask(t, url, visit{path: preview})
	}
	first, status, cookies, _ := openLink(t, url, shareID, secretText, page)
	if status != http.StatusOK || first.Token != "" || len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
		t.Fatalf("the first browser: %d, %+v, %v", status, first, cookies)
	}
	own := cookies[0].Name + "=" + cookies[0].Value
	if _, status, _, _ := openLink(t, url, shareID, secretText, page); status != http.StatusForbidden {
		t.Errorf("another browser: %d", status)
	}
	again := page.Clone()
	again.Set("Cookie", own)
	if _, status, _, _ := openLink(t, url, shareID, secretText, again); status != http.StatusOK {
		t.Errorf("the first one again: %d", status)
	}
	if r, _ := ask(t, url, visit{path: "/s/state", cookie: own}); r.StatusCode != http.StatusOK {
		t.Errorf("it is reloaded: %d", r.StatusCode)
	}
	// The cookie of a guest counts only below /s/, that of a login does not count there.
	if r, _ := ask(t, url, visit{path: "/plain", cookie: own}); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("a guest's cookie at the page for people: %d", r.StatusCode)
	}
	login := launchedAs(t, h, url, rights.Principal{Role: rights.RoleAdmin})
	if r, _ := ask(t, url, visit{path: "/s/state", cookie: login}); r.StatusCode != http.StatusUnauthorized {
		t.Errorf("a login at the page for guests: %d", r.StatusCode)
	}
	for cookie, ok := range map[string]bool{own: true, login: false} {
		ch, err := wsconn.Dial(t.Context(), url+"/s/ahp", wsconn.Options{HTTPHeader: http.Header{"Cookie": {cookie}}, ReadLimit: 1 << 20})
		if (err == nil) != ok {
			t.Errorf("a connection below /s/: %v", err)
		}
		if err == nil {
			_ = ch.Close()
		}
	}
	for _, one := range kept.Kept() {
		if strings.Contains(fmt.Sprint(one), secretText) {
			t.Error("the secret is kept")
		}
	}
}

// A restart of the host ends no link; the terminal may have another URI afterwards, and
// the browser that was let in still is.
func TestLinksOutliveTheHost(t *testing.T) {
	kept := &drawer{}
	secretText, _ := linkSecret()
	until := time.Now().Add(time.Hour)
	h, url := serve(t, host.Options{Token: secret, Shares: kept})
	machine := dial(t, url+"?tkn="+secret, "laptop", viewOptions{})
	machine.create(uri)
	must.Do(t, machine.shares(uri, shareID, true, until))
	_, _, cookies, _ := openLink(t, url, shareID, secretText, http.Header{"Origin": {"http" + strings.TrimPrefix(url, "ws")}})
	h.Close()
	_, url = serve(t, host.Options{Token: secret, Shares: kept})
	back := http.Header{"Origin": {"http" + strings.TrimPrefix(url, "ws")}, "Cookie": {"tether_guest_" + url[strings.LastIndex(url, ":")+1:] + "=" + cookies[0].Value}}
	if g, status, _, _ := openLink(t, url, shareID, secretText, back); status != http.StatusOK || g.Row != nil {
		t.Errorf("before the machine is back: %d, %+v", status, g)
	}
	machine = dial(t, url+"?tkn="+secret, "laptop", viewOptions{})
	machine.create(uri + "-2")
	must.Do(t, machine.shares(uri+"-2", shareID, true, until))
	if g, status, _, _ := openLink(t, url, shareID, secretText, back); status != http.StatusOK || g.Terminal != uri+"-2" || g.Row == nil {
		t.Errorf("after that: %d, %+v", status, g)
	}
	if _, status, _, _ := openLink(t, url, shareID, secretText, nil); status != http.StatusForbidden {
		t.Errorf("somebody else: %d", status)
	}
}

// Only the machine of a terminal shares it; times and ids are bounded; a host may refuse
// all of it.
func TestWhoShares(t *testing.T) {
	s := newStaff(false, "machine.laptop.ann", "machine.desktop.bob", "observer.eve.eve")
	_, url := serve(t, host.Options{Token: secret, Access: s, People: s})
	machine := dial(t, url+"?tkn=machine.laptop.ann", "laptop", viewOptions{})
	machine.create(uri)
	soon := time.Now().Add(time.Hour)
	must.Do(t, machine.shares(uri, shareID, false, soon))
	other, eve := dial(t, url+"?tkn=machine.desktop.bob", "desktop", viewOptions{}), dial(t, url+"?tkn=observer.eve.eve", "eve", viewOptions{})
	other.create(uri + "-b")
	for what, err := range map[string]error{
		"another machine's terminal": other.shares(uri, "bbbbbbbb", false, soon),
		"another's id":               other.shares(uri+"-b", shareID, false, soon),
		"an observer":                eve.shares(uri, "cccccccc", false, soon),
		"nothing":                    machine.shares(uri+"-none", "dddddddd", false, soon),
		"in the past":                machine.shares(uri, "eeeeeeee", false, time.Now().Add(-time.Minute)),
		"for ever":                   machine.shares(uri, "ffffffff", false, time.Now().Add(365*24*time.Hour)),
		"no id":                      machine.shares(uri, "", false, soon),
	} {
		if err == nil {
			t.Errorf("%s: allowed", what)
		}
	}
	check.OK(t, other.call(ahp.MethodUnshare, ahp.UnshareParams{Channel: uri, ID: shareID}, nil))
	secretText, _ := linkSecret()
	if _, status, _, _ := openLink(t, url, shareID, secretText, nil); status != http.StatusOK {
		t.Errorf("after another machine has ended it: %d", status)
	}
	_, none := serve(t, host.Options{Token: secret, NoShares: true})
	quiet := dial(t, none+"?tkn="+secret, "laptop", viewOptions{})
	quiet.create(uri)
	if err := quiet.shares(uri, shareID, false, soon); err == nil {
		t.Error("a host without links took one")
	}
	if r, _ := ask(t, none, visit{path: "/s/"}); r.StatusCode != http.StatusNotFound {
		t.Errorf("its page for guests: %d", r.StatusCode)
	}
}

// A guest's program is a guest below /s/ by its token, also at a host that asks nobody
// for one, and under any name of the host.
func TestGuestsPrograms(t *testing.T) {
	_, url := serve(t, host.Options{})
	machine := dial(t, url, "laptop", viewOptions{})
	machine.create(uri)
	machine.create(uri + "-other")
	must.Do(t, machine.shares(uri, shareID, false, time.Now().Add(time.Hour)))
	secretText, _ := linkSecret()
	g, status, _, _ := openLink(t, url, shareID, secretText, http.Header{"Host": {"other.example"}})
	if status != http.StatusOK {
		t.Fatal(status)
	}
	if _, status, _, _ := openLink(t, url, shareID, secretText, http.Header{"Host": {"other.example"}, "Origin": {"http://other.example"}}); status != http.StatusForbidden {
		t.Errorf("a page under another name: %d", status)
	}
	v := dial(t, url+"/s/ahp?tkn="+g.Token, "guest", viewOptions{subs: []string{ahp.RootURI, uri}})
	defer v.close()
	v.await("the guest sees the terminal alone", func() bool { return len(v.root.Terminals) == 1 && v.root.Terminals[0].Resource == uri })
	for path, want := range map[string]int{"/s/state": http.StatusOK, "/s/ahp": http.StatusNotFound} {
		if r, body := ask(t, url, visit{path: path, token: g.Token}); r.StatusCode != want {
			t.Errorf("%s: %d %.200s", path, r.StatusCode, body)
		}
	}
	for name, token := range map[string]string{"nobody": "", "another token": "tetherguest_x"} {
		if ch, err := wsconn.Dial(t.Context(), url+"/s/ahp?tkn="+token, wsconn.Options{ReadLimit: 1 << 20}); err == nil {
			_ = ch.Close()
			t.Errorf("%s is let in below /s/", name)
		}
	}
	must.Do(t, machine.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: uri}, nil))
	<-v.done
	if v.states[uri].Lifecycle.Exited() {
		t.Error("the end of a link is told as the terminal's")
	}
	if _, status, _, _ := openLink(t, url, shareID, secretText, nil); status != http.StatusForbidden {
		t.Errorf("after the terminal was disposed of: %d", status)
	}
}

// A machine that disposes of a terminal which only the host before has known ends its
// links; another machine, or an observer, does not.
func TestLinksEndWithATerminalOfTheHostBefore(t *testing.T) {
	for token, want := range map[string]int{"machine.laptop.ann": 0, "machine.desk.ann": 1, "machine.laptop2.bob": 1, "observer.ann.ann": 1, "admin.root.": 1} {
		kept := &drawer{all: []share.Link{{ID: shareID, Channel: uri, Machine: "laptop", Owner: "p-ann", Created: time.Now(), Until: time.Now().Add(time.Hour)}}}
		s := newStaff(true, token)
		h, url := serve(t, host.Options{Access: s, People: s, Shares: kept})
		v := as(t, url, token, "a", viewOptions{})
		if err := v.call(ahp.MethodDisposeTerminal, ahp.DisposeTerminalParams{Channel: uri}, nil); err == nil {
			t.Errorf("%s: disposed of", token)
		}
		v.close()
		if want == 0 {
			testkit.Eventually(t, patience, "the link has ended", func() bool { return len(kept.Kept()) == 0 })
		}
		h.Close()
		if got := kept.Kept(); len(got) != want {
			t.Errorf("%s: %d links are left, want %d", token, len(got), want)
		}
	}
}

// A link whose file cannot be written works while the host runs, and ends when its
// machine says so; the next write has all that has changed.
func TestLinksThatCannotBeStored(t *testing.T) {
	kept := &drawer{away: true}
	_, url := serve(t, host.Options{Token: secret, Shares: kept})
	machine := dial(t, url+"?tkn="+secret, "laptop", viewOptions{})
	machine.create(uri)
	secretText, _ := linkSecret()
	opens := func(id string) bool {
		_, status, _, _ := openLink(t, url, id, secretText, nil)
		return status == http.StatusOK
	}
	ids := []string{"abcdefgh", "bcdefghi", "cdefghij"}
	for _, id := range ids[:2] {
		must.Do(t, machine.shares(uri, id, true, time.Now().Add(time.Hour)))
	}
	if !opens(ids[0]) || opens(ids[0]) || !opens(ids[1]) {
		t.Error("a link for one browser does not let in one")
	}
	must.Do(t, machine.call(ahp.MethodUnshare, ahp.UnshareParams{Channel: uri, ID: ids[1]}, nil))
	if opens(ids[1]) {
		t.Error("an ended link works")
	}
	kept.mu.Lock()
	kept.away = false
	kept.mu.Unlock()
	must.Do(t, machine.shares(uri, ids[2], false, time.Now().Add(time.Hour)))
	testkit.Eventually(t, patience, "the links that work are stored", func() bool {
		all := kept.Kept()
		slices.SortFunc(all, func(a, b share.Link) int { return strings.Compare(a.ID, b.ID) })
		return len(all) == 2 && all[0].ID == ids[0] && len(all[0].Guests) == 1 && all[1].ID == ids[2]
	})
}
