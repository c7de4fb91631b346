package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// pushedTo is a browser that is logged in at a host, and its push service.
type pushedTo struct {
	t                     *testing.T
	address, cookie, csrf string
	key                   string // the host's
	browser               *testkit.PushBrowser
	service               string
	got                   chan string // notifications
}

func newPushedTo(t *testing.T, address, token string) *pushedTo {
	t.Helper()
	b := &pushedTo{t: t, address: address, cookie: loginAt(t, address, token), browser: testkit.Browser(t, "", ""), got: make(chan string, 100)}
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var n struct{ Title, Text string }
		body, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(b.browser.Decrypt(t, body), &n)
		}
		if err != nil || !strings.HasSuffix(r.Header.Get("Authorization"), "k="+b.key) {
			t.Errorf("%v, %v", err, r.Header)
		}
		w.WriteHeader(http.StatusCreated)
		b.got <- n.Title + ": " + n.Text
	}))
	t.Cleanup(service.Close)
	b.service = service.URL
	b.key, b.csrf = b.offered(address)
	return b
}

// offered is the host's key, and what a request needs, at one of its addresses.
func (b *pushedTo) offered(address string) (key, csrf string) {
	b.t.Helper()
	var a struct{ Key, CSRF string }
	status, text := b.try(http.MethodGet, address, "/push", "")
	if err := json.Unmarshal(text, &a); status != http.StatusOK || err != nil {
		b.t.Fatalf("%d: %s", status, text)
	}
	return a.Key, a.CSRF
}

func (b *pushedTo) try(method, address, path, body string) (status int, text []byte) {
	b.t.Helper()
	r := must.Get(http.NewRequestWithContext(b.t.Context(), method, "http://"+address+path, strings.NewReader(body)))(b.t)
	_, from, _ := strings.Cut(b.address, ":")
	_, to, _ := strings.Cut(address, ":")
	cookie := strings.Replace(b.cookie, from, to, 1) // it has another name at another port
	for name, value := range map[string]string{"Cookie": cookie, "Origin": "http://" + address, "X-Tether-Csrf": b.csrf} {
		r.Header.Set(name, value)
	}
	answer := must.Get(http.DefaultClient.Do(r))(b.t)
	defer answer.Body.Close()
	return answer.StatusCode, must.Get(io.ReadAll(answer.Body))(b.t)
}

// post asks as the page does, with a choice in JSON or without one.
func (b *pushedTo) post(choice string) (status int) {
	b.t.Helper()
	keys := must.Get(json.Marshal(b.browser.Keys()))(b.t)
	status, _ = b.try(http.MethodPost, b.address, "/push", fmt.Sprintf(`{"subscription":{"endpoint":%q,"keys":%s}%s}`, b.service, keys, choice))
	return status
}

// choose chooses failing programs of all terminals.
func (b *pushedTo) choose() {
	b.t.Helper()
	if status := b.post(`,"choice":{"all":true,"kinds":["terminal.exited"]}`); status != http.StatusOK {
		b.t.Fatalf("the choice is answered %d", status)
	}
}

// next waits for the next notification.
func (b *pushedTo) next(want string) {
	b.t.Helper()
	select {
	case got := <-b.got:
		if got != want {
			b.t.Errorf("the browser shows %q, want %q", got, want)
		}
	case <-time.After(patience):
		b.t.Fatalf("the browser does not show %q", want)
	}
}

// People choose at any node; one node notifies their browsers, once, also when another
// one has died. Who logs out at one node is notified by none.
func TestNotificationsOfNodes(t *testing.T) {
	servers := testkit.StartJetStream(t, clusterTools)
	s := newStage(t)
	var nodes [2]*exec.Cmd
	var addresses, files [2]string
	for n := range 2 {
		files[n] = filepath.Join(s.dir, fmt.Sprint("node", n), "tokens.json")
		if n > 0 {
			copyKey(t, files[0], files[n])
		}
		nodes[n], addresses[n] = s.host(t, "127.0.0.1:0", "--tokens", files[n], "--nats", servers.URLs, "--push", "--webhook-allow", "127.0.0.1")
	}
	create := func(args ...string) string {
		return s.do(t, "tether-host", append(append([]string{"token", "create"}, args...), "--tokens", files[1])...)
	}
	token := filepath.Join(s.dir, "laptop.token")
	must.Do(t, os.WriteFile(token, []byte(create("laptop", "--once")), 0o600))
	m := s.machine(t)
	m.do(t, "tether", "pair", "--token-file", token, "ws://"+addresses[0], "ws://"+addresses[1])
	ann, bob := newPushedTo(t, addresses[1], create("ann", "--role", "observer")), newPushedTo(t, addresses[1], create("bob", "--role", "observer"))
	if key, _ := ann.offered(addresses[0]); key == "" || key != ann.key {
		t.Errorf("the nodes' keys are %q and %q", key, ann.key)
	}
	ann.choose()
	bob.choose()
	fail := func(name string, told ...*pushedTo) {
		t.Helper()
		m.do(t, "tether", "run", "--detach", "--name", name, "--", "sh", "-c", "until [ -e $PARTS/"+name+" ]; do sleep 0.05; done; echo boom; exit 3")
		testkit.Eventually(t, patience, name+" is lent", func() bool { // the machine may be on its way to the other node
			_, page := bob.try(http.MethodGet, addresses[1], "/plain", "")
			return strings.Contains(string(page), "/"+name+"<") || strings.Contains(string(page), ">"+name+"<")
		})
		must.Do(t, os.WriteFile(filepath.Join(s.dir, name), nil, 0o600))
		for _, b := range told {
			b.next("laptop/" + name + ": exited with code 3; last line: boom")
		}
	}
	fail("first", ann, bob)
	fail("second", ann, bob)
	must.Do(t, nodes[0].Process.Kill())
	_ = nodes[0].Wait() // it was killed
	testkit.Eventually(t, patience, "the other node notifies", func() bool { return ann.post("") == http.StatusOK })
	fail("third", ann, bob)
	if status := pageWith(t, http.MethodPost, addresses[1], "/logout", ann.cookie); status != http.StatusSeeOther {
		t.Fatalf("logging out: %d", status)
	}
	fail("fourth", bob)
	fail("fifth", bob)
	if n := len(ann.got); n != 0 {
		t.Errorf("after the logout the browser shows %d", n)
	}
}
