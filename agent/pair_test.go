package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"tether/agent"
	"tether/agent/hosts"
	"tether/agent/localapi"
	"tether/agent/term"
	"tether/ahp"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
	"tether/jsonrpc/wsconn"
	"tether/platform/pty"
)

// plainHost is a host that knows nothing of client-executed terminals, or speaks only an
// unknown version.
type plainHost struct {
	strange bool
	shells  bool // it starts a shell of its own for each terminal, as VS Code's host does
	mu      sync.Mutex
	methods []string
}

func (h *plainHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ch, err := wsconn.Accept(w, r, wsconn.Options{})
	if err != nil {
		return // the client is gone
	}
	handle := func(_ context.Context, r *jsonrpc.Request) {
		h.mu.Lock()
		h.methods = append(h.methods, r.Method)
		h.mu.Unlock()
		switch {
		case h.shells && (r.Method == ahp.MethodCreateTerminal || r.Method == ahp.MethodDisposeTerminal):
			_ = r.Reply(struct{}{})
		case h.shells && r.Method == ahp.MethodSubscribe:
			_ = r.Reply(json.RawMessage(`{"snapshot":{"resource":"ahp-terminal:/x","fromSeq":1,"state":{"title":"bash","content":[{"type":"unclassified","value":"$ "}]}}}`))
		case r.Method != ahp.MethodInitialize:
			_ = r.ReplyError(&jsonrpc.Error{Code: -32601, Message: "no"})
		case h.strange:
			_ = r.ReplyError(&jsonrpc.Error{Code: jsonrpc.Code(ahp.CodeUnsupportedProtocolVersion), Message: "no",
				Data: json.RawMessage(`{"supportedVersions":["99.0.0"]}`)})
		default:
			_ = r.Reply(ahp.InitializeResult{ProtocolVersion: "1.0.0"})
		}
	}
	_ = jsonrpc.NewPeer(ch, jsonrpc.Options{Handler: jsonrpc.HandlerFunc(handle)}).Run(r.Context())
}

func (h *plainHost) asked(method string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Contains(strings.Join(h.methods, " ")+" ", method+" ")
}

func TestPairWithHostsThatDoNotFit(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	a := start(t, agent.Config{Dirs: home(t)})
	plain := &plainHost{}
	plainURL := serveHTTP(t, plain)
	web := serveHTTP(t, http.NotFoundHandler())
	for _, c := range []struct {
		name, url, token string
		code             localapi.Code
		exit             int
	}{
		{"no client terminals", plainURL, "", localapi.CodeUnsupportedHost, 1},
		{"another version", serveHTTP(t, &plainHost{strange: true}), "", localapi.CodeUnsupportedHost, 1},
		{"a web server", web, "secret-canary", localapi.CodeUnreachable, 5},
		{"nobody", "ws://127.0.0.1:1", "secret-canary", localapi.CodeUnreachable, 5},
		{"wrong token", startHost(t, "right"), "secret-canary", localapi.CodeRefused, 4},
		{"no such name", "wss://host.invalid", "secret-canary", localapi.CodeUnreachable, 5},
	} {
		_, err := a.client.Pair(t.Context(), localapi.PairRequest{URL: c.url, Token: c.token})
		var e *localapi.Error
		if !errors.As(err, &e) || e.Code != c.code || localapi.ExitStatus(err) != c.exit || e.Hint == "" {
			t.Errorf("%s: %v (%+v), want %s with a hint", c.name, err, e, c.code)
		}
		if e != nil && strings.Contains(e.Message+e.Hint, "canary") {
			t.Errorf("%s: the token is in %q", c.name, e.Message)
		}
	}
	if s, _ := a.client.Status(t.Context()); len(s.Hosts) != 0 {
		t.Errorf("kept: %+v", s.Hosts)
	}

	// Pairing can be forced, but a terminal is only lent if the host then shows it as
	// ours.
	must.Get(a.client.Pair(t.Context(), localapi.PairRequest{URL: plainURL, Name: "plain", AssumeClientTerminals: true}))(t)
	must.Get(a.client.Spawn(t.Context(), localapi.SpawnRequest{Command: testkit.Sleep(), Env: os.Environ(), Cwd: testkit.Abs("/")}))(t)
	testkit.Eventually(t, patience, "it was tried", func() bool { return plain.asked(ahp.MethodCreateTerminal) })
	a.status("status tells the trouble", func(s localapi.Status) bool {
		h := s.Hosts[0]
		return h.Error != "" || len(h.Lent) == 1 && h.Lent[0].Problem != ""
	})
}

// A loan to a host that takes no terminals is refused, whether that is known already or
// the terminal is the first that is tried there, and nothing is left of it.
func TestLendToAHostThatTakesNoTerminals(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	for name, plain := range map[string]*plainHost{"it knows no terminals": {}, "it starts shells of its own": {shells: true}} {
		t.Run(name, func(t *testing.T) {
			a := start(t, agent.Config{Dirs: home(t)})
			tm, err := a.client.Spawn(t.Context(), localapi.SpawnRequest{Command: testkit.Sleep(), Env: os.Environ(), Cwd: testkit.Abs("/")})
			must.Do(t, err)
			must.Get(a.client.Pair(t.Context(), localapi.PairRequest{URL: serveHTTP(t, plain), Name: "plain", AssumeClientTerminals: true}))(t)
			a.state("it is linked", "online")
			for _, when := range []string{"at first", "again"} {
				_, err = a.client.Lend(t.Context(), tm.ID, localapi.LendRequest{Host: "plain"})
				e, ok := errors.AsType[*localapi.Error](err)
				if !ok || e.Code != localapi.CodeUnsupportedHost || !strings.Contains(e.Message, "takes no terminals") || !strings.Contains(e.Hint, "tether-host") {
					t.Errorf("%s: %v", when, err)
				}
				if got, err := a.client.Find(t.Context(), tm.ID); err != nil || len(got.LentTo) > 0 {
					t.Errorf("%s: lent to %v, %v; want to nobody", when, got.LentTo, err)
				}
			}
			if plain.shells && !plain.asked(ahp.MethodDisposeTerminal) {
				t.Error("the host's shell was left")
			}
		})
	}
}

func TestURLValues(t *testing.T) {
	for given, want := range map[string]string{
		"wss://Host.Example/":         "wss://host.example",
		" https://host.example/path/": "wss://host.example/path",
		"http://127.0.0.1:80":         "ws://127.0.0.1:80",
		"ws://[::1]:9187":             "ws://[::1]:9187",
		"ws://localhost:1/?a=b":       "ws://localhost:1/?a=b",
	} {
		got, err := hosts.URL(given)
		if want = strings.Replace(want, "/?", "?", 1); err != nil || strings.Replace(got, "/?", "?", 1) != want {
			t.Errorf("%q: %q, %v; want %q", given, got, err, want)
		}
	}
	for given, want := range map[string]localapi.Code{
		"": localapi.CodeBadRequest, "host.example": localapi.CodeBadRequest, "wss://": localapi.CodeBadRequest, "ftp://x": localapi.CodeBadRequest,
		"wss://user:canary@host.example": localapi.CodeBadRequest, "wss://x?tkn=canary": localapi.CodeBadRequest, "wss://x#canary": localapi.CodeBadRequest,
		"wss://bad%zz?tkn=canary": localapi.CodeBadRequest, "\x00": localapi.CodeBadRequest,
		"ws://host.example": localapi.CodeInsecure, "http://10.0.0.1": localapi.CodeInsecure, "ws://localhost.example": localapi.CodeInsecure,
		"ws://127.0.0.1.example": localapi.CodeInsecure,
	} {
		_, err := hosts.URL(given)
		var e *localapi.Error
		if !errors.As(err, &e) || e.Code != want || strings.Contains(e.Message+e.Hint, "canary") {
			t.Errorf("%q: %v, want %s without a secret", given, err, want)
		}
	}
}

// Nothing is sent in clear text to an address that is not of this machine alone: neither
// where it is asked for, nor where the file of hosts has been made to say so.
func TestNothingIsSentInTheClear(t *testing.T) {
	address := ""
	all, err := net.InterfaceAddrs()
	if err != nil {
		testkit.NotOnWine(t, "it cannot list network adapters: "+err.Error())
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && !n.IP.IsLoopback() {
			address = n.IP.String()
		}
	}
	if address == "" {
		t.Skip("this machine has loopback alone")
	}
	l, err := net.Listen("tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		t.Skipf("the machine's own address: %v", err)
	}
	defer l.Close()
	url := "ws://" + l.Addr().String()
	d := home(t)
	a := start(t, agent.Config{Dirs: d})
	request := localapi.PairRequest{URL: url, Token: "secret-canary", Name: "x"}
	_, pairing := a.client.Pair(t.Context(), request)
	request.Token = ""
	_, offer := a.client.Offer(t.Context(), request)
	for _, err := range []error{pairing, offer} {
		if e, ok := errors.AsType[*localapi.Error](err); !ok || e.Code != localapi.CodeInsecure || localapi.ExitStatus(err) != 4 {
			t.Errorf("%v, want %s", err, localapi.CodeInsecure)
		}
	}
	a.end()
	pairedWith(t, d.State, map[string]string{"x": url})
	next, err := agent.New(agent.Config{Dirs: d, AllowRoot: true})
	if err == nil {
		err = next.Run(t.Context())
	}
	if err == nil || !strings.Contains(err.Error(), "clear text") {
		t.Errorf("a daemon that finds such a host in the file: %v", err)
	}
	if _, _, err := hosts.Endpoint(d, "x"); err == nil || !strings.Contains(err.Error(), "clear text") {
		t.Errorf("whoever needs no daemon: %v", err)
	}
	mine := must.Get(net.Dial("tcp", l.Addr().String()))(t)
	defer mine.Close()
	first := must.Get(l.Accept())(t)
	defer first.Close()
	if first.RemoteAddr().String() != mine.LocalAddr().String() {
		t.Error("somebody has connected before")
	}
}

func TestPairedHostsAreKept(t *testing.T) {
	d := home(t)
	one, two := startHost(t, "1"), startHost(t, "")
	a := start(t, agent.Config{Dirs: d})
	pair := func(r localapi.PairRequest) localapi.HostStatus {
		t.Helper()
		return must.Get(a.client.Pair(t.Context(), r))(t)
	}
	if h := pair(localapi.PairRequest{URL: one, Token: "1"}); h.Name != "local" || !h.Default {
		t.Errorf("first: %+v", h)
	}
	if h := pair(localapi.PairRequest{URL: two}); h.Name != "local-2" || h.Default {
		t.Errorf("second: %+v", h)
	}
	ids := func() string {
		data := must.Get(os.ReadFile(filepath.Join(d.State, "hosts.json")))(t)
		var f struct {
			Hosts []struct {
				Name     string `json:"name"`
				ClientID string `json:"client_id"`
			} `json:"hosts"`
		}
		must.Do(t, json.Unmarshal(data, &f))
		text := ""
		for _, h := range f.Hosts {
			if len(h.ClientID) != 36 {
				t.Errorf("client id %q", h.ClientID)
			}
			text += h.Name + "=" + h.ClientID + " "
		}
		return text
	}
	before := ids()
	pair(localapi.PairRequest{URL: one, Token: "1"}) // again
	if after := ids(); after != before {
		t.Errorf("pairing again made %q of %q", after, before)
	}
	if h := pair(localapi.PairRequest{URL: two, Default: true}); !h.Default {
		t.Errorf("made the default: %+v", h)
	}
	var e *localapi.Error
	if _, err := a.client.Pair(t.Context(), localapi.PairRequest{URL: two, Name: "local"}); !errors.As(err, &e) || e.Code != localapi.CodePaired {
		t.Errorf("a taken name: %v", err)
	}
	a.end()

	a = start(t, agent.Config{Dirs: d})
	s := a.status("both are online again", func(s localapi.Status) bool {
		return len(s.Hosts) == 2 && s.Hosts[0].State == "online" && s.Hosts[1].State == "online"
	})
	if s.Hosts[0].Default || !s.Hosts[1].Default || s.Hosts[0].URL != one {
		t.Errorf("after a restart: %+v", s.Hosts)
	}
	if e, found, err := hosts.Endpoint(d, "local"); err != nil || !found || e.Token != "1" {
		t.Errorf("endpoint by name: %+v, %t, %v", e, found, err)
	}
	if _, found, err := hosts.Endpoint(d, "other"); err != nil || found {
		t.Errorf("endpoint of nobody: %t, %v", found, err)
	}
	must.Get(a.client.Unpair(t.Context(), "local-2"))(t)
	if s, _ := a.client.Status(t.Context()); len(s.Hosts) != 1 || !s.Hosts[0].Default {
		t.Errorf("the last one left is the default: %+v", s.Hosts)
	}
}

// A terminal that starts while its host is unpaired must not be lent to another host that
// gets that name later.
func TestSpawnAndUnpairInTheSameInstant(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	url := startHost(t, "")
	starting, goOn := make(chan bool), make(chan bool)
	a := start(t, agent.Config{Dirs: home(t), Terminals: term.Options{Start: func(term.ID, pty.Command) (term.PTY, error) {
		starting <- true
		<-goOn
		return testkit.NewChild(), nil
	}}})
	pair := func(url string) {
		t.Helper()
		must.Get(a.client.Pair(t.Context(), localapi.PairRequest{URL: url, Name: "lab"}))(t)
	}
	pair(url)
	spawned := make(chan error)
	go func() {
		_, err := a.client.Spawn(context.Background(), localapi.SpawnRequest{Command: testkit.Sleep(), Env: os.Environ(), Cwd: testkit.Abs("/"), Name: "mine"})
		spawned <- err
	}()
	<-starting
	must.Get(a.client.Unpair(t.Context(), "lab"))(t)
	goOn <- true
	must.Do(t, <-spawned)
	pair(startHost(t, ""))
	got, err := a.client.Find(t.Context(), "mine")
	if err != nil || len(got.LentTo) > 0 {
		t.Errorf("lent to %v, %v; want to nobody", got.LentTo, err)
	}
}

func TestUnpairWithdraws(t *testing.T) {
	url := startHost(t, "")
	a := start(t, agent.Config{Dirs: home(t)})
	must.Get(a.client.Pair(t.Context(), localapi.PairRequest{URL: url}))(t)
	tm := must.Get(a.client.Spawn(t.Context(), localapi.SpawnRequest{Command: testkit.Sleep(), Env: os.Environ(), Cwd: testkit.Abs("/"), Name: "mine"}))(t)
	exits, shown := observe(t, url, "mine")
	<-shown
	must.Get(a.client.Unpair(t.Context(), "local"))(t)
	<-exits // the host says that it is over
	got, err := a.client.Find(t.Context(), tm.ID)
	if err != nil || got.Exit != nil || len(got.LentTo) > 0 {
		t.Errorf("the terminal itself: %+v, %v; want it running and not lent", got, err)
	}
}

// A host may have several addresses: they are kept, and another host's is refused by its
// key. One that nobody answers at is kept, too.
func TestPairingWithSeveralAddresses(t *testing.T) {
	d, k, stranger := home(t), startKeyHost(t), startKeyHost(t)
	a := start(t, agent.Config{Dirs: d})
	to, err := url.Parse(strings.Replace(k.url, "ws", "http", 1))
	must.Do(t, err)
	second := serveHTTP(t, httputil.NewSingleHostReverseProxy(to))
	held := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t) // nobody else gets the port
	t.Cleanup(func() { held.Close() })
	go func() {
		for {
			c, err := held.Accept()
			if err != nil {
				return
			}
			c.Close()
		}
	}()
	silent := "ws://" + held.Addr().String()
	token := func(name string) string {
		t.Helper()
		once, _, err := k.tokens.CreatePairing(name, 0)
		must.Do(t, err)
		return once
	}
	_, err = a.client.Pair(t.Context(), localapi.PairRequest{URL: k.url, Also: []string{stranger.url}, Token: token("one")})
	if why, ok := errors.AsType[*localapi.Error](err); !ok || why.Code != localapi.CodeRefused || !strings.Contains(why.Message, "is another host") {
		t.Errorf("with the address of another host: %v", err)
	}
	_, err = a.client.Pair(t.Context(), localapi.PairRequest{URL: k.url, Also: []string{"ws://example.org"}, Token: "x"})
	if why, ok := errors.AsType[*localapi.Error](err); !ok || why.Code != localapi.CodeInsecure {
		t.Errorf("with an address in clear text: %v", err)
	}
	h, err := a.client.Pair(t.Context(), localapi.PairRequest{URL: k.url, Also: []string{second, silent, second, k.url}, Token: token("two")})
	if err != nil || !slices.Equal(h.Also, []string{second, silent}) {
		t.Fatalf("%+v, %v", h, err)
	}
	var at, state string
	testkit.Eventually(t, patience, "it is linked at an address, or for good at none", func() bool {
		s, err := a.client.Status(t.Context())
		if err == nil && len(s.Hosts) == 1 {
			at, state = s.Hosts[0].At, s.Hosts[0].State
		}
		return at != "" || state == "refused"
	})
	if at != k.url && at != second {
		t.Errorf("linked at %q, %s", at, state)
	}
}
