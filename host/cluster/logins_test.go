package cluster_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// browser is one that reaches the nodes by one name, so that each gets its cookie.
type browser struct {
	t      *testing.T
	cookie string
}

// ask sends a request to a node, with a form or without, and returns the status. It keeps
// the cookie that it gets.
func (b *browser) ask(n *node, method, path string, form url.Values) int {
	b.t.Helper()
	r := must.Get(http.NewRequestWithContext(b.t.Context(), method, n.http.URL+path, strings.NewReader(form.Encode())))(b.t)
	r.Close = true
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	name := "tether_host_" + r.URL.Port()
	if b.cookie != "" {
		r.AddCookie(&http.Cookie{Name: name, Value: b.cookie})
	}
	resp := must.Get(http.DefaultTransport.RoundTrip(r))(b.t)
	resp.Body.Close()
	for _, c := range resp.Cookies() {
		if c.Name == name {
			b.cookie = c.Value
		}
	}
	return resp.StatusCode
}

func (b *browser) sees(n *node) bool {
	b.t.Helper()
	return b.ask(n, http.MethodGet, "/people/entries", nil) == http.StatusOK
}

// link asks a node for a link for who has a token.
func (b *browser) link(n *node, token string) string {
	b.t.Helper()
	r := must.Get(http.NewRequestWithContext(b.t.Context(), http.MethodPost, n.http.URL+"/launch", nil))(b.t)
	r.Header.Set("Authorization", "Bearer "+token)
	resp := must.Get(http.DefaultClient.Do(r))(b.t)
	defer resp.Body.Close()
	var made struct{ Path string }
	if err := json.NewDecoder(resp.Body).Decode(&made); err != nil || made.Path == "" {
		b.t.Fatalf("%d %+v, %v", resp.StatusCode, made, err)
	}
	return made.Path
}

// follow presses the button of a link at a node and reports whether that logs the browser
// in.
func (b *browser) follow(n *node, link string) bool {
	b.t.Helper()
	_, code, _ := strings.Cut(link, "#")
	return b.ask(n, http.MethodPost, "/login", url.Values{"code": {code}}) == http.StatusSeeOther
}

// A browser that logs in at one node, by a token or a link, is logged in at every node at
// once, and logged out at all within two seconds. A link works once at all nodes
// together.
func TestLoginsOfEveryNode(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	a, b := startCompany(t, servers.URLs), startCompany(t, servers.URLs)
	token, info, err := a.tokens.Create("ann", rights.RoleObserver, 0)
	must.Do(t, err)
	testkit.Eventually(t, patience, "the token is known", func() bool { _, ok := b.tokens.Authenticate(token); return ok })
	byToken, byLink, byOwn := &browser{t: t}, &browser{t: t}, &browser{t: t}
	if byToken.ask(a.node, http.MethodPost, "/login", url.Values{"token": {token}}); !byToken.sees(b.node) || !byToken.sees(a.node) {
		t.Error("a login by a token does not count at both nodes")
	}
	link := byLink.link(a.node, token)
	if !byLink.follow(b.node, link) || !byLink.sees(a.node) || !byLink.sees(b.node) {
		t.Error("a link of the other node does not log in")
	}
	for _, n := range []*company{a, b} {
		if again := (&browser{t: t}); again.follow(n.node, link) || again.cookie != "" {
			t.Error("a link that was used logs in")
		}
	}
	// The nodes of this test have the same token of their own.
	if byOwn.follow(a.node, byOwn.link(b.node, own)); !byOwn.sees(a.node) || !byOwn.sees(b.node) {
		t.Error("a link for the host's own token")
	}
	if byLink.ask(b.node, http.MethodPost, "/logout", nil); byLink.sees(b.node) {
		t.Error("it was logged out here and goes on")
	}
	testkit.Eventually(t, patience, "it is logged out at the other node, too", func() bool { return !byLink.sees(a.node) })
	if !byToken.sees(a.node) || !byToken.sees(b.node) {
		t.Error("another browser was logged out")
	}
	must.Get(a.tokens.Revoke(info.ID))(t)
	testkit.Eventually(t, patience, "the login of a revoked token ends at all nodes", func() bool { return !byToken.sees(a.node) && !byToken.sees(b.node) })
	late := startCompany(t, servers.URLs)
	if !byOwn.sees(late.node) || byToken.sees(late.node) || byLink.sees(late.node) {
		t.Error("a node that comes later knows other logins")
	}
}
