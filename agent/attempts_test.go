package agent_test

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tether/agent"
	"tether/agent/hosts"
	"tether/agent/localapi"
	"tether/ahp/client"
	"tether/host"
	"tether/host/access"
	"tether/host/devices"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/pairing"
	"tether/platform/keyring"
	"tether/platform/secret"
)

// keyHost is a host that pairs by keys.
type keyHost struct {
	t       *testing.T
	url     string
	pending string
	tokens  *access.Tokens
	stop    func() // has it let go of all connections, and serve nobody
}

func startKeyHost(t *testing.T) *keyHost {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	k := &keyHost{t: t, pending: filepath.Join(dir, "pending.json")}
	var err error
	if k.tokens, err = access.Open(access.File(filepath.Join(dir, "tokens.json"))); err != nil {
		t.Fatal(err)
	}
	if _, _, err := k.tokens.Create("watcher", rights.RoleObserver, 0); err != nil { // makes the directory
		t.Fatal(err)
	}
	_, key, err := ed25519.GenerateKey(nil)
	must.Do(t, err)
	door := must.Get(devices.New(devices.Options{Key: key, Tokens: k.tokens, Pending: access.OwnFile(k.pending)}))(t)
	h := host.New(host.Options{Access: devices.Both(k.tokens, door), Grace: time.Minute})
	h.Page().Handle(pairing.Path, door)
	var away atomic.Bool
	k.stop = func() { away.Store(true); h.Close() }
	k.url = serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(h.Close)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); k.tokens.Run(ctx, nil) }()
	t.Cleanup(func() { cancel(); <-done })
	return k
}

// pair pairs by a code that is approved, and returns the host's status.
func (k *keyHost) pair(a *daemon, r localapi.PairRequest, as string) localapi.HostStatus {
	k.t.Helper()
	r.URL = k.url
	o, err := a.client.Offer(k.t.Context(), r)
	if err != nil || o.ID == "" || len(o.Code) != 6 || !strings.HasPrefix(o.HostKey, "SHA256:") {
		k.t.Fatalf("offer %+v, %v", o, err)
	}
	must.Get(devices.Approve(access.OwnFile(k.pending), k.tokens, o.Code, as))(k.t)
	h := must.Get(a.client.Finish(k.t.Context(), o.ID))(k.t)
	if _, err := a.client.Finish(k.t.Context(), o.ID); err == nil {
		k.t.Error("a pairing is finished twice")
	}
	return h
}

// state waits until the only host is in a state.
func (d *daemon) state(what, state string) localapi.HostStatus {
	d.t.Helper()
	return d.status(what, func(s localapi.Status) bool { return len(s.Hosts) == 1 && s.Hosts[0].State == state }).Hosts[0]
}

// The first pairings may begin side by side: the machine still gets one key, or all but
// one of them would open nothing.
func TestOffersAtOnceShareAKey(t *testing.T) {
	d, k := home(t), startKeyHost(t)
	ring := &fakeRing{items: map[string]string{}, locked: make(chan struct{})}
	defer time.AfterFunc(300*time.Millisecond, func() { close(ring.locked) }).Stop() // so that all are there before one has found a place for it
	a := start(t, agent.Config{Dirs: d, Secrets: hosts.Secrets{Keyring: keyring.New(ring)}})
	keys := make([]string, 3)
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			o, err := a.client.Offer(t.Context(), localapi.PairRequest{URL: k.url})
			check.OK(t, err)
			keys[i] = o.DeviceKey
		})
	}
	all.Wait()
	for _, key := range keys {
		if key == "" || key != keys[0] {
			t.Errorf("keys %q, want one", keys)
		}
	}
}

func TestPairingByKeys(t *testing.T) {
	d, k := home(t), startKeyHost(t)
	a := start(t, agent.Config{Dirs: d})
	h := k.pair(a, localapi.PairRequest{Name: "work"}, "laptop")
	if h.Name != "work" || h.Credential != "key" || !h.Default || !strings.HasPrefix(h.HostKey, "SHA256:") {
		t.Errorf("paired: %+v", h)
	}
	a.state("it is online", "online")

	// Once more there is nothing to do, and nobody has to approve anything; but there is
	// where something else is said.
	if o, err := a.client.Offer(t.Context(), localapi.PairRequest{URL: k.url}); err != nil || o.ID != "" || o.Paired == nil || o.Paired.Name != "work" || o.Paired.Credential != "key" {
		t.Errorf("once more: %+v, %v", o, err)
	}
	for _, r := range []localapi.PairRequest{{URL: k.url, OnDispose: "kill"}, {URL: k.url, Name: "another"}} {
		if o, err := a.client.Offer(t.Context(), r); err != nil || o.ID == "" || o.Paired != nil {
			t.Errorf("%+v: %+v, %v", r, o, err)
		}
	}
	must.Get(a.client.Spawn(t.Context(), localapi.SpawnRequest{Command: testkit.Sleep(), Env: os.Environ(), Cwd: testkit.Abs("/")}))(t)
	a.status("a terminal is lent", func(s localapi.Status) bool { return len(s.Hosts[0].Lent) == 1 && s.Hosts[0].Lent[0].Problem == "" })
	a.end()

	// The next daemon connects with the same key, and so do programs that need no daemon.
	a = start(t, agent.Config{Dirs: d})
	a.state("it is online again", "online")
	e, found, err := hosts.Endpoint(d, "work")
	if err != nil || !found || e.Token != "" {
		t.Fatalf("endpoint: %+v, %v, %v", e, found, err)
	}
	conn := must.Get(client.Connect(t.Context(), e, client.Options{ClientID: "another"}))(t)
	conn.Close()

	// Revoked there, the link says so and the key opens nothing.
	must.Get(k.tokens.Revoke("laptop"))(t)
	if h := a.state("it is refused", "refused"); !strings.Contains(h.Error, "revoked") {
		t.Errorf("it says %q", h.Error)
	}

	// Paired again, under another name, it is the same host here.
	if h := k.pair(a, localapi.PairRequest{}, "laptop-2"); h.Name != "work" {
		t.Errorf("again: %+v", h)
	}
	a.state("it is back", "online")

	// Unpairing takes the key away there.
	must.Get(a.client.Unpair(t.Context(), "work"))(t)
	all, err := k.tokens.List()
	for _, i := range all {
		if err != nil || i.Kind == access.KindDevice {
			t.Errorf("the host still knows %+v, %v", i, err)
		}
	}
}

// Unpaired, a host that cannot be reached may let the key in until it is revoked there:
// that is said, and the key is gone here with the last host that knows it.
func TestUnpairWithoutTheHost(t *testing.T) {
	d, k, gone := home(t), startKeyHost(t), startKeyHost(t)
	a := start(t, agent.Config{Dirs: d})
	k.pair(a, localapi.PairRequest{Name: "there"}, "laptop")
	gone.pair(a, localapi.PairRequest{Name: "gone"}, "laptop")
	path := filepath.Join(d.State, "hosts.json")
	key := seed(t, path)
	gone.stop()
	u, err := a.client.Unpair(t.Context(), "gone")
	if err != nil || u.Keeps == "" {
		t.Errorf("a host that is not there: %+v, %v", u, err)
	}
	holding(t, filepath.Dir(d.State), key, "hosts.json")
	if u, err := a.client.Unpair(t.Context(), "there"); err != nil || u.Keeps != "" {
		t.Errorf("a host that is there: %+v, %v", u, err)
	}
	holding(t, filepath.Dir(d.State), key, "")

	// It is paired with again by another key.
	k.pair(a, localapi.PairRequest{}, "laptop")
	a.state("it is online", "online")
	if seed(t, path) == key {
		t.Error("the key is the old one")
	}
}

// A host that is another one, with all that was recorded of the first, is told nothing.
func TestAnotherHostIsRefused(t *testing.T) {
	d, k, impostor := home(t), startKeyHost(t), startKeyHost(t)
	a := start(t, agent.Config{Dirs: d})
	k.pair(a, localapi.PairRequest{Name: "work"}, "laptop")
	a.state("it is online", "online")
	a.end()
	path := filepath.Join(d.State, "hosts.json")
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.ReplaceAll(string(data), k.url, impostor.url)), 0o600)
	}
	must.Do(t, err)
	all, err := k.tokens.List()
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	a = start(t, agent.Config{Dirs: d})
	if h := a.state("it is refused", "refused"); h.Credential != "key" || h.Error == "" {
		t.Errorf("%+v", h)
	}
}

func TestPairingTokens(t *testing.T) {
	d, k := home(t), startKeyHost(t)
	a := start(t, agent.Config{Dirs: d})
	token, _, err := k.tokens.CreatePairing("laptop", time.Hour)
	must.Do(t, err)
	refused := func(r localapi.PairRequest, want localapi.Code) {
		t.Helper()
		_, err := a.client.Pair(t.Context(), r)
		if e, ok := errors.AsType[*localapi.Error](err); !ok || e.Code != want || e.Hint == "" || strings.Contains(err.Error(), r.Token) {
			t.Errorf("%v, want %s with a hint", err, want)
		}
	}
	refused(localapi.PairRequest{URL: k.url, Token: pairing.TokenPrefix + "canary"}, localapi.CodeRefused)
	refused(localapi.PairRequest{URL: startHost(t, "x"), Token: token}, localapi.CodeUnsupportedHost)
	refused(localapi.PairRequest{URL: "ws://127.0.0.1:1", Token: token}, localapi.CodeUnreachable)
	h, err := a.client.Pair(t.Context(), localapi.PairRequest{URL: k.url, Token: token})
	if err != nil || h.Credential != "key" {
		t.Fatalf("%+v, %v", h, err)
	}
	a.state("it is online", "online")

	// The token is used up: it pairs no other machine, and this one is paired already.
	refused(localapi.PairRequest{URL: k.url, Token: token, Name: "another"}, localapi.CodeRefused)
	if h, err := a.client.Pair(t.Context(), localapi.PairRequest{URL: k.url, Token: token}); err != nil || h.Name != "local" || h.Credential != "key" {
		t.Errorf("once more: %+v, %v", h, err)
	}
	if all, err := k.tokens.List(); err != nil || len(all) != 2 {
		t.Errorf("the host knows %+v, %v; want the watcher and this machine", all, err)
	}
	must.Get(k.tokens.Revoke("laptop"))(t)
	a.state("the host has seen that it was revoked", "refused")
	refused(localapi.PairRequest{URL: k.url, Token: token}, localapi.CodeRefused)
	a.end()
	holding(t, d.State, token, "")
}

// holding checks that a secret is in the file of that name under a directory, and in no
// other.
func holding(t *testing.T, dir, text, file string) {
	t.Helper()
	if text == "" {
		t.Fatal("no secret to look for")
	}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		f, err := secret.OpenRead(path) // on Windows os.ReadFile cannot read a file that the daemon has open
		if err != nil {
			return err
		}
		defer f.Close()
		data, err := io.ReadAll(f)
		if has := strings.Contains(string(data), text); err == nil && has != (e.Name() == file) {
			t.Errorf("%s: the secret is in it: %v", path, has)
		}
		return err
	})
	must.Do(t, err)
}

// A host that does not pair by keys is recognised at once, however it answers unknown
// requests.
func TestHostsThatPairByTokensAlone(t *testing.T) {
	testkit.NotOnWine(t, testkit.Slow)
	a := start(t, agent.Config{Dirs: home(t)})
	for name, url := range map[string]string{
		"a host":             startHost(t, "x"),
		"a web server":       serveHTTP(t, http.NotFoundHandler()),
		"one that redirects": serveHTTP(t, http.RedirectHandler("http://127.0.0.1:1/", http.StatusFound)),
		"another protocol":   serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"version":9}`)) })),
		"a flood": serveHTTP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		})),
		"one that hangs": serveHTTP(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })),
	} {
		if o, err := a.client.Offer(t.Context(), localapi.PairRequest{URL: url}); err != nil || o.ID != "" {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
	for _, r := range []localapi.PairRequest{{URL: "ws://example.com"}, {URL: "ws://127.0.0.1:1"}, {URL: "ws://127.0.0.1:1", Token: "x"}} {
		if _, err := a.client.Offer(t.Context(), r); err == nil {
			t.Errorf("%+v is offered", r)
		}
	}
}

// seed is this machine's key as the file has it.
func seed(t *testing.T, path string) string {
	t.Helper()
	data := must.Get(os.ReadFile(path))(t)
	_, rest, ok := strings.Cut(string(data), `"device_key": "`)
	text, _, _ := strings.Cut(rest, `"`)
	if raw, err := base64.StdEncoding.DecodeString(text); !ok || err != nil || len(raw) != ed25519.SeedSize {
		t.Fatalf("no key in %s", data)
	}
	return text
}

func TestTheKeyIsInOneFile(t *testing.T) {
	d, k := home(t), startKeyHost(t)
	a := start(t, agent.Config{Dirs: d, LogLevel: "debug"})
	k.pair(a, localapi.PairRequest{}, "laptop")
	s := a.status("it is online", func(s localapi.Status) bool { return s.Hosts[0].State == "online" })
	path := filepath.Join(d.State, "hosts.json")
	if s.Secrets == nil || s.Secrets.Store != "file" || s.Secrets.Path != path || s.Secrets.Why == "" {
		t.Errorf("status says %+v", s.Secrets)
	}
	a.end()
	holding(t, filepath.Dir(d.State), seed(t, path), "hosts.json")
}
