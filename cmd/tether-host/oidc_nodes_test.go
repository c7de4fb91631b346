package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// A person logs in by a provider at a host of three nodes behind a load balancer that is
// not sticky: begins at one node, comes back to another and is logged in at all. The node
// that speaks with the provider dies; the login lives on, and ends everywhere when the
// person logs out of the host, or is removed.
func TestPeopleLogInAtNodes(t *testing.T) {
	servers := testkit.StartJetStream(t, clusterTools)
	s := newStage(t)
	port := freePort(t)
	origin := "http://127.0.0.1:" + port
	issuer := identityProvider(t, origin+"/login/oidc/callback")
	secretFile := filepath.Join(s.dir, "client.secret")
	must.Do(t, os.WriteFile(secretFile, []byte("secret\n"), 0o600))
	var nodes [3]*exec.Cmd
	var addresses, files [3]string
	for n := range nodes {
		files[n] = filepath.Join(s.dir, fmt.Sprint("node", n), "tokens.json")
		if n > 0 {
			copyKey(t, files[0], files[n])
		}
		nodes[n], addresses[n] = s.host(t, "127.0.0.1:0", "--tokens", files[n], "--nats", servers.URLs, "--public-url", origin, "--oidc-issuer", issuer,
			"--oidc-client-id", "web", "--oidc-secret-file", secretFile)
	}

	// The load balancer sends each request to the next of the nodes that are up.
	var up atomic.Pointer[[]string]
	all := addresses[:]
	up.Store(&all)
	var turn atomic.Int64
	l := must.Get(net.Listen("tcp", "127.0.0.1:"+port))(t)
	balancer := &http.Server{Handler: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		to := *up.Load()
		r.SetURL(&url.URL{Scheme: "http", Host: to[turn.Add(1)%int64(len(to))]})
		r.Out.Host = r.In.Host
	}}}
	go balancer.Serve(l)
	t.Cleanup(func() { balancer.Close() })
	page := func(p *person) (statuses map[int]int) {
		statuses = map[int]int{}
		for range *up.Load() {
			_, status, _ := p.visit(origin + "/plain")
			statuses[status]++
		}
		return statuses
	}

	ann, bob := newPerson(t, origin), newPerson(t, origin)
	for _, p := range []*person{ann, bob} {
		if status, text := p.logIn(origin+"/login/oidc", "verysecure"); status != http.StatusOK || !strings.Contains(text, "Continue") {
			t.Fatalf("logged in: %d\n%s", status, text)
		}
		if got := page(p); got[http.StatusOK] != 3 {
			t.Fatalf("the pages after the login: %v", got)
		}
	}

	_ = nodes[0].Process.Kill() // it leads, as it was the first
	_ = nodes[0].Wait()
	left := addresses[1:]
	up.Store(&left)
	if got := page(ann); got[http.StatusOK] != 2 {
		t.Errorf("the pages after the leader has died: %v", got)
	}
	carol := newPerson(t, origin)
	testkit.Eventually(t, patience, "another person logs in by the next leader", func() bool {
		at, _, _ := carol.visit(origin + "/login/oidc")
		return at.Query().Get("authRequestID") != ""
	})
	if status, text := carol.logIn(origin+"/login/oidc", "verysecure"); status != http.StatusOK || !strings.Contains(text, "Continue") {
		t.Errorf("logged in by the next leader: %d\n%s", status, text)
	}

	r := must.Get(http.NewRequest(http.MethodPost, origin+"/logout", nil))(t)
	r.Header.Set("Origin", origin)
	ann.read(ann.client.Do(r))
	testkit.Eventually(t, patience, "who has logged out is out everywhere", func() bool { return page(ann)[http.StatusOK] == 0 })
	if got := page(bob); got[http.StatusOK] != 2 {
		t.Errorf("another browser of the person: %v", got)
	}
	s.do(t, "tether-host", "people", "rm", "test-user", "--tokens", files[1])
	testkit.Eventually(t, patience, "who was removed is out everywhere", func() bool { return page(bob)[http.StatusOK]+page(carol)[http.StatusOK] == 0 })
}
