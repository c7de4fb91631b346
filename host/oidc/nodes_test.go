package oidc_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"tether/host/access"
	"tether/host/leader"
	"tether/host/oidc"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/pairing"
)

// nodes are the nodes of a host, with one identity provider.
type nodes struct {
	*testkit.Nodes
	t    *testing.T
	rigs map[string]*rig
}

// newNodes starts the nodes a, b and c. It is called in a bubble.
func newNodes(t *testing.T) *nodes {
	n := &nodes{testkit.NewNodes(t, "callback", "challenge", "token", "login"), t, map[string]*rig{}}
	place := access.File(filepath.Join(t.TempDir(), "state", "sessions"))
	var first *rig
	for _, name := range []string{"a", "b", "c"} {
		r := newRig(t, func(o *oidc.Options) {
			o.Shared = &leader.Shared{Nodes: testkit.Node{Nodes: n.Nodes, Name: name}, Place: place, Key: []byte(strings.Repeat("k", 32))}
		})
		if first == nil {
			first = r
		}
		r.fake, r.people = first.fake, first.people
		r.opts.People = first.people
		r.start()
		n.rigs[name] = r
		ctx, cancel := context.WithCancel(context.Background())
		go r.provider.Run(ctx)
		t.Cleanup(func() { cancel(); synctest.Wait() })
	}
	synctest.Wait()
	return n
}

// at makes a browser's next requests come to a node.
func (n *nodes) at(name string, b *browser) *browser {
	b.rig = n.rigs[name]
	return b
}

// logins are the principals of a session at each node.
func (n *nodes) logins(token string) (all []rights.Principal) {
	for name, r := range n.rigs {
		if p, ok := r.provider.Known(token); ok {
			all = append(all, p)
		} else {
			n.t.Errorf("the session is not known at %s", name)
		}
	}
	return all
}

// ended reports at how many nodes the principals' rights have ended.
func ended(all []rights.Principal) (n int) {
	for _, p := range all {
		if p.Live.Err() != nil {
			n++
		}
	}
	return n
}

func unix(in time.Duration) string { return strconv.FormatInt(time.Now().Add(in).Unix(), 10) }

func deadline(p rights.Principal) time.Time {
	at, _ := p.Live.Deadline()
	return at
}

// A login begins at one node, comes back to another, and counts at all; one node renews;
// the next leader goes on where the last one has stopped, and an end at any node is one
// everywhere within two seconds.
func TestLoginsOfNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		n.Lead("a")
		login := func() (string, []rights.Principal) {
			t.Helper()
			b := n.rigs["b"].browser()
			back := b.begin()
			in := n.at("c", b).get(back)
			if in.StatusCode != http.StatusOK || in.Header.Get("Token") == "" || len(b.cookies) != 0 {
				t.Fatalf("the way back: %s, cookies %v", in.Status, b.cookies)
			}
			return in.Header.Get("Token"), n.logins(in.Header.Get("Token"))
		}
		_, first := login()
		time.Sleep(time.Second)
		second, others := login()

		logout := func(at string) int {
			t.Helper()
			key, _ := keys()
			token := oidctest.SignIDToken(key, "1", "RS256", `{"iss": "`+issuer+`", "aud": "`+client+`", "sub": "248289761001", "iat": `+unix(0)+`, "exp": `+unix(time.Minute)+`, "jti": "`+unix(0)+`", "events": {"http://schemas.openid.net/event/backchannel-logout": {}}}`)
			w := n.rigs[at].browser().post(public+oidc.Path+"/logout", "", url.Values{"logout_token": {token}})
			return w.Code
		}

		asked := 0
		n.rigs["a"].fake.now(func() {
			n.rigs["a"].fake.answer = func(_ http.ResponseWriter, r *http.Request) bool {
				if r.URL.Path == "/token" {
					asked++
				}
				return false
			}
		})
		time.Sleep(9*time.Minute + 30*time.Second)
		synctest.Wait()
		if asked != 2 || ended(first)+ended(others) != 0 {
			t.Errorf("%d requests renewed two sessions; %d and %d ended", asked, ended(first), ended(others))
		}

		// The leader dies; until the next one leads, requests wait.
		n.Stop("a")
		answered := make(chan int)
		go func() { _, status := ask[pairing.LoginPage](n.rigs["c"], "page", "", struct{}{}); answered <- status }()
		time.Sleep(time.Second)
		n.Lead("b")
		if status := <-answered; status != http.StatusOK {
			t.Errorf("a request without a leader: %d", status)
		}
		n.rigs["a"].fake.now(func() { asked = 0 })
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if asked != 2 || ended(first)+ended(others) != 0 {
			t.Errorf("under the next leader, %d requests renewed two sessions; %d and %d ended", asked, ended(first), ended(others))
		}

		// The page of a third node ends a session.
		id := ""
		for _, e := range n.rigs["c"].provider.Entries() {
			if p, _ := n.rigs["c"].provider.Known(second); e.Until.Equal(deadline(p)) {
				id = e.ID
			}
		}
		check.OK(t, n.rigs["c"].provider.End(id))
		if err := n.rigs["c"].provider.End("s-0"); !errors.Is(err, rights.ErrNoEntry) {
			t.Errorf("ending a session that is not there: %v", err)
		}
		time.Sleep(2 * time.Second)
		if ended(others) != 3 {
			t.Errorf("the session ended at %d of three nodes", ended(others))
		}

		// The provider announces a logout to a node that does not lead.
		if status := logout("c"); status != http.StatusOK {
			t.Errorf("logout: %d", status)
		}
		time.Sleep(2 * time.Second)
		if ended(first) != 3 {
			t.Errorf("after a logout the session ended at %d of three nodes", ended(first))
		}
		for name, r := range n.rigs {
			if r.provider.Count() != 0 {
				t.Errorf("%s has %d sessions", name, r.provider.Count())
			}
		}
	})
}

// A node that takes over a person's sessions does not bring back groups that only an
// older one of them has.
func TestOldSessionsBringNoGroupsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		n.Lead("a")
		a := n.rigs["a"]
		a.browser().login()
		time.Sleep(time.Minute)
		a.fake.now(func() { a.fake.person["groups"] = []string{"web"} })
		token := a.browser().login()
		a.people.mu.Lock()
		a.people.seen = nil
		a.people.mu.Unlock()
		if _, ok := n.rigs["c"].provider.Known(token); !ok || n.rigs["c"].provider.Count() != 2 {
			t.Fatal("the sessions are not taken over")
		}
		a.people.mu.Lock()
		defer a.people.mu.Unlock()
		for _, i := range a.people.seen {
			if strings.Join(i.Groups, " ") != "web" {
				t.Errorf("the host is told of the groups %q", i.Groups)
			}
		}
	})
}

// A login of the command line goes over any nodes, and waits for its person at another
// one.
func TestCommandLineOfNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		n.Lead("a")
		begun, status := ask[pairing.LoginBegun](n.rigs["b"], "begin", "", pairing.LoginBegin{Challenge: pairing.LoginChallenge(verifier)})
		if status != http.StatusOK {
			t.Fatalf("begin: %d", status)
		}
		type result struct {
			in     pairing.LoggedIn
			status int
		}
		claimed := make(chan result, 1)
		go func() {
			in, status := ask[pairing.LoggedIn](n.rigs["b"], "token", "", pairing.LoginClaim{ID: begun.ID, Verifier: verifier})
			claimed <- result{in, status}
		}()
		ann := n.rigs["c"].browser()
		page, id := ann.through(public + pairing.LoginPath + "?code=" + begun.Code)
		if !strings.Contains(page, begun.Code) {
			t.Fatalf("the question:\n%s", page)
		}
		if w := n.at("a", ann).post(public+pairing.LoginPath+"/allow", public, url.Values{"id": {id}}); w.Code != http.StatusOK {
			t.Errorf("allow: %d %s", w.Code, w.Body)
		}
		got := <-claimed
		if got.status != http.StatusOK || got.in.Person != "ann" {
			t.Fatalf("claimed: %+v", got)
		}
		all := n.logins(got.in.Token)
		if _, status := ask[struct{}](n.rigs["c"], "logout", got.in.Token, struct{}{}); status != http.StatusOK {
			t.Errorf("logout: %d", status)
		}
		time.Sleep(2 * time.Second)
		if ended(all) != 3 {
			t.Errorf("the session ended at %d of three nodes", ended(all))
		}
	})
}

// Bad questions get no answer, requests that are too long and those that no node can
// answer a refusal.
func TestBadQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNodes(t)
		b := n.rigs["c"].browser()
		if r := b.get(public + oidc.Path); r.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("without a leader: %s", r.Status)
		}
		if _, status := ask[pairing.LoginPage](n.rigs["c"], "page", "", struct{}{}); status != http.StatusServiceUnavailable {
			t.Errorf("the command line without a leader: %d", status)
		}
		if w := b.post(public+pairing.LoginPath+"/allow", public, url.Values{}); w.Code != http.StatusServiceUnavailable || strings.Contains(w.Header().Get("Content-Type"), "json") {
			t.Errorf("a person's answer without a leader: %d %s", w.Code, w.Header())
		}
		shared := leader.Shared{Nodes: testkit.Node{Nodes: n.Nodes, Name: "newer"}, Place: access.File(filepath.Join(t.TempDir(), "state", "newer")), Key: []byte(strings.Repeat("k", 32))}
		newer := must.Get(leader.New(shared, "logins", time.Second, func(context.Context, any) (any, bool) { return nil, true }))(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go newer.Run(ctx, func(ctx context.Context, _ access.Place) error { <-ctx.Done(); return nil })
		synctest.Wait()
		n.Lead("newer")
		synctest.Wait()
		if r := b.get(public + oidc.Path); r.StatusCode != http.StatusInternalServerError {
			t.Errorf("an answer without a status: %s", r.Status)
		}
		n.Lead("a")
		synctest.Wait()
		for _, question := range []string{"", "x", strings.Repeat("x", 100)} {
			if a, _ := (testkit.Node{Nodes: n.Nodes, Name: "c"}).Ask(t.Context(), "a", "", []byte(question)); a != nil {
				t.Errorf("%.9q is answered", question)
			}
		}
		if w := b.post(public+oidc.Path+"/logout", "", url.Values{"x": {strings.Repeat("x", 70<<10)}}); w.Code != http.StatusRequestEntityTooLarge {
			t.Errorf("a long body: %d", w.Code)
		}
		b.cookies["long"] = &http.Cookie{Name: "long", Value: strings.Repeat("x", 200<<10)}
		if r := b.get(public + oidc.Path); r.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("long cookies: %s", r.Status)
		}
	})
}
