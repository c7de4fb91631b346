//go:build linux

package local_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tether/agent/config"
	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// beServer is a program that listens at an address, and prints its URL. /away leads
// elsewhere.
func beServer(address, elsewhere string) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("http://" + l.Addr().String())
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/away":
			http.Redirect(w, r, elsewhere, http.StatusFound)
		case "/broken":
			fmt.Fprintln(os.Stderr, "\nmain.c:3:5: error: no "+hushedToken)
			http.Error(w, "<h1>broken</h1> "+hushedToken, http.StatusInternalServerError)
		case "/cookie":
			w.Header().Set("Set-Cookie", "session=1")
			w.Header().Set("X-Token", hushedToken)
		case "/image":
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte("\x89PNG"))
		case "/hang":
			<-r.Context().Done()
		case "/liar":
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte(hushedToken))
		}
	}))
}

// elsewhere is a server outside of all terminals, with the number of its connections.
func elsewhere(t *testing.T) (url string, port int, visits *atomic.Int64) {
	t.Helper()
	visits = &atomic.Int64{}
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			visits.Add(1)
		}
	}
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.URL, srv.Listener.Addr().(*net.TCPAddr).Port, visits
}

// declares is a configuration that declares a port for every terminal.
type declares struct {
	local.Declarer
	port int
}

func (d declares) ReadyPort(string) int          { return d.port }
func (d declares) Declared() []localapi.Declared { return nil }

// served starts a server in a terminal of an owner, and returns its URL and port.
func (d *real) served(t *testing.T, owner term.Actor, leadsTo string) (id, url string, port int) {
	t.Helper()
	return d.servedAt(t, owner, "127.0.0.1:0", leadsTo)
}

func (d *real) servedAt(t *testing.T, owner term.Actor, address, leadsTo string) (id, url string, port int) {
	t.Helper()
	dir := t.TempDir()
	h := must.Get(d.pool.As(owner).Spawn(term.Spec{Command: []string{"sh", "-c", `exec "$SELF" > out`}, Cwd: dir, Env: append(slices.Clip(d.env), sayVar+"=serve "+address+" "+leadsTo)}))(t)
	testkit.Eventually(t, patience, "a server", func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "out"))
		url = strings.TrimSpace(string(text))
		return strings.HasSuffix(string(text), "\n")
	})
	return string(h.ID()), url, int(netip.MustParseAddrPort(strings.TrimPrefix(url, "http://")).Port())
}

// An agent's waits connect to programs of terminals that it sees, and to nothing else,
// also not where a redirect leads. The person's connect to any port.
func TestWhereAgentsWaitsConnect(t *testing.T) {
	d := openReal(t, local.Options{})
	url, port, visits := elsewhere(t)
	id, own, ownPort := d.served(t, term.Agent("bob"), url)
	_, hers, hersPort := d.served(t, term.Agent("eve"), url)
	_, persons, _ := d.served(t, term.User, url)
	person := localclient.New(d.socket)
	defer person.Close()
	bob := person.As("bob")
	const short = 300 * time.Millisecond
	other := func(port int) localapi.Waited {
		return localapi.Waited{Reason: "timeout", Listener: "another program", Detail: fmt.Sprintf("another program listens on port %d, in no terminal that you see", port)}
	}
	for name, c := range map[string]struct {
		o    localclient.WaitOptions
		want localapi.Waited
	}{
		"the agent's port":         {localclient.WaitOptions{Port: ownPort}, localapi.Waited{Reason: "port", Listener: "this terminal", Address: strings.TrimPrefix(own, "http://")}},
		"the agent's URL":          {localclient.WaitOptions{URL: own + "/x?y=z"}, localapi.Waited{Reason: "url", Status: 200}},
		"the person's URL":         {localclient.WaitOptions{URL: persons}, localapi.Waited{Reason: "url", Status: 200}},
		"a port of another agent":  {localclient.WaitOptions{Port: hersPort, Timeout: short}, other(hersPort)},
		"a URL of another agent":   {localclient.WaitOptions{URL: hers, Timeout: short}, other(hersPort)},
		"a port of no terminal":    {localclient.WaitOptions{Port: port, Timeout: short}, other(port)},
		"a URL of no terminal":     {localclient.WaitOptions{URL: url + "/secret?x", Timeout: short}, other(port)},
		"a redirect to such a URL": {localclient.WaitOptions{URL: own + "/away", Timeout: short}, other(port)},
		"a port where nothing is":  {localclient.WaitOptions{Port: 1, Timeout: short}, localapi.Waited{Reason: "timeout"}},
	} {
		got, err := bob.Wait(t.Context(), id, c.o)
		for c.want.Detail != "" && err == nil && got.Detail == "" && c.o.Timeout < patience { // a busy machine has not yet found out
			c.o.Timeout *= 4
			got, err = bob.Wait(t.Context(), id, c.o)
		}
		if strings.Contains(got.Detail, "another program") {
			got.Detail = got.Detail[strings.Index(got.Detail, "another program"):]
		}
		got = localapi.Waited{Reason: got.Reason, Listener: got.Listener, Address: got.Address, Status: got.Status, Detail: got.Detail}
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	if n := visits.Load(); n != 0 {
		t.Errorf("the daemon connected %d times to what no terminal has", n)
	}
	if got, err := person.Wait(t.Context(), id, localclient.WaitOptions{URL: url}); err != nil || got.Reason != "url" {
		t.Errorf("the person: %+v, %v", got, err)
	}
}

// A wait of an agent for a port that nobody has connects once a terminal's program
// listens on it.
func TestAgentsWaitBeginsWithItsServer(t *testing.T) {
	d := openReal(t, local.Options{})
	id, _, _ := d.served(t, term.Agent("bob"), "x")
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	port := l.Addr().(*net.TCPAddr).Port
	defer l.Close()
	c := localclient.New(d.socket)
	defer c.Close()
	answered := make(chan localapi.Waited, 1)
	go func() {
		w, err := c.As("bob").Wait(t.Context(), id, localclient.WaitOptions{Port: port, Timeout: patience})
		check.OK(t, err)
		answered <- w
	}()
	l.Close() // another program had it
	d.servedAt(t, term.Agent("bob"), l.Addr().String(), "x")
	if w := <-answered; w.Reason != "port" {
		t.Errorf("%+v", w)
	}
}

// The person may declare a port that no program of a terminal has, such as a container's.
func TestAgentsWaitForDeclaredPorts(t *testing.T) {
	url, port, visits := elsewhere(t)
	d := openReal(t, local.Options{Declared: declares{port: port}})
	id, _, _ := d.served(t, term.User, "x")
	c := localclient.New(d.socket)
	defer c.Close()
	for name, o := range map[string]localclient.WaitOptions{"the port": {Port: port}, "a URL": {URL: url}} {
		if got, err := c.As("bob").Wait(t.Context(), id, o); err != nil || got.Reason == "timeout" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if visits.Load() == 0 {
		t.Error("the daemon did not connect")
	}
}

// An agent without a network does not reach one through the daemon.
func TestAgentsWithoutNetworkWaitForNoPort(t *testing.T) {
	c := config.Default().Policy
	c.Principals = []config.PolicyIdentity{{Name: "agent:bob", Sandbox: "auto", Roots: []string{testkit.Abs("/")}, Network: "none"}}
	e := must.Get(policy.New(policy.Options{Config: c}))(t)
	d := openReal(t, local.Options{Policy: e})
	id, own, port := d.served(t, term.Agent("bob"), "x")
	client := localclient.New(d.socket)
	defer client.Close()
	for _, o := range []localclient.WaitOptions{{Port: port}, {URL: own}, {Port: 1}} {
		_, err := client.As("bob").Wait(t.Context(), id, o)
		wantCode(t, fmt.Sprintf("%+v", o), err, localapi.CodeDenied)
		if err == nil || !strings.Contains(err.Error(), `agent bob has no network (network = "none")`) {
			t.Errorf("%v", err)
		}
	}
	if got, err := client.As("eve").Wait(t.Context(), id, localclient.WaitOptions{Port: port}); err == nil {
		t.Errorf("another agent's terminal: %+v", got)
	}
}
