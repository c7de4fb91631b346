package cluster_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"tether/ahp"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// asPage sends a request with headers to a node, in whose URL its name is another one.
func asPage(t *testing.T, n *node, method, at, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	u := must.Get(url.Parse(at))(t)
	r := must.Get(http.NewRequestWithContext(t.Context(), method, n.http.URL+u.RequestURI(), strings.NewReader(body)))(t)
	r.Host, r.Close = u.Host, true
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	a := must.Get(http.DefaultTransport.RoundTrip(r))(t)
	defer a.Body.Close()
	return a, string(must.Get(io.ReadAll(a.Body))(t))
}

// A click at one node, the code at another, and requests at each: all nodes know a
// preview. A code works once at all of them.
func TestPreviewsAtEveryNode(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	a, b := startCompany(t, servers.URLs), startCompany(t, servers.URLs)
	m := &portMachine{t: t, handler: devServer}
	m.lend(a.node)
	browser := &browser{t: t}
	if !browser.follow(a.node, browser.link(a.node, own)) {
		t.Fatal("nobody is logged in")
	}
	click := func() (target, code string) {
		t.Helper()
		var got struct{ URL, Code string }
		testkit.Eventually(t, patience, "a code at the other node", func() bool {
			r, body := asPage(t, b.node, "POST", b.http.URL+"/previews", fmt.Sprintf(`{"terminal":%q,"port":3000}`, b.Lent()[0].ID), "Content-Type", "application/json", "Origin", b.http.URL,
				"Cookie", "tether_host_"+b.url[strings.LastIndexByte(b.url, ':')+1:]+"="+browser.cookie)
			return r.StatusCode == http.StatusOK && json.Unmarshal([]byte(body), &got) == nil
		})
		return got.URL, got.Code
	}
	testkit.Eventually(t, patience, "the other node lists the terminal", func() bool { return len(b.Lent()) == 1 })
	target, code := click()
	bring := func(n *node) *http.Response {
		t.Helper()
		r, _ := asPage(t, n, "POST", target, url.Values{"code": {code}}.Encode(), "Content-Type", "application/x-www-form-urlencoded", "Origin", b.http.URL, "Sec-Fetch-Dest", "document")
		return r
	}
	opened := bring(a.node)
	if opened.StatusCode != http.StatusSeeOther || len(opened.Cookies()) != 1 {
		t.Fatalf("the code at the terminal's node: %s", opened.Status)
	}
	cookie := opened.Cookies()[0]
	for i, n := range []*node{a.node, b.node} {
		if again := bring(n); again.StatusCode != http.StatusForbidden {
			t.Errorf("the code again, at node %d: %s", i, again.Status)
		}
		if r, body := asPage(t, n, "GET", strings.Replace(target, "/.tether/open", "/page", 1), "", "Cookie", cookie.Name+"="+cookie.Value, "Sec-Fetch-Site", "same-origin"); r.StatusCode != http.StatusOK || !strings.HasPrefix(body, "page /page localhost:3000") {
			t.Errorf("the page at node %d: %s %s", i, r.Status, body)
		}
	}
	must.Do(t, m.conn.Peer().Call(t.Context(), ahp.MethodLentPorts, ahp.LentPortsParams{Channel: lent, Ports: []ahp.LentPort{{Port: 3000, SinceMs: 8}}}, nil))
	testkit.Eventually(t, patience, "a new lending has another name at the other node", func() bool {
		next, _ := click()
		return next != target
	})
}
