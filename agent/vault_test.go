package agent_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	library "github.com/zalando/go-keyring"

	"tether/agent"
	"tether/agent/hosts"
	"tether/agent/localapi"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/keyring"
	"tether/platform/secret"
)

// fakeRing is a keyring in memory that can be locked.
type fakeRing struct {
	mu     sync.Mutex
	items  map[string]string
	broken error
	locked chan struct{} // closed when it is unlocked; nil is unlocked
}

func (f *fakeRing) reach() error {
	f.mu.Lock()
	broken, locked := f.broken, f.locked
	f.mu.Unlock()
	if locked != nil {
		<-locked
	}
	return broken
}

func (f *fakeRing) Set(_, user, password string) error {
	if err := f.reach(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items[user] = password
	return nil
}

func (f *fakeRing) Get(_, user string) (string, error) {
	if err := f.reach(); err != nil {
		return "", err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	text, ok := f.items[user]
	if !ok {
		return "", library.ErrNotFound
	}
	return text, nil
}

func (f *fakeRing) Delete(_, user string) error {
	if err := f.reach(); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.items, user)
	return nil
}

// values are all secrets in it.
func (f *fakeRing) values() (all []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, v := range f.items {
		all = append(all, v)
	}
	return all
}

func TestSecretsInTheKeyring(t *testing.T) {
	d, k := home(t), startKeyHost(t)
	ring := &fakeRing{items: map[string]string{}}
	config := agent.Config{Dirs: d, Secrets: hosts.Secrets{Keyring: keyring.New(ring)}}
	a := start(t, config)
	if h, err := a.client.Pair(t.Context(), localapi.PairRequest{URL: startHost(t, "canary-token"), Token: "canary-token", Name: "plain"}); err != nil || h.Credential != "token" {
		t.Fatalf("%+v, %v", h, err)
	}
	k.pair(a, localapi.PairRequest{Name: "keys"}, "laptop")
	online := func(s localapi.Status) bool {
		return len(s.Hosts) == 2 && s.Hosts[0].State == "online" && s.Hosts[1].State == "online"
	}
	if s := a.status("both are online", online); s.Secrets == nil || s.Secrets.Store != "keyring" || s.Secrets.Path != "" {
		t.Errorf("status says %+v", s.Secrets)
	}
	a.end()
	if all := ring.values(); len(all) != 2 {
		t.Errorf("%d secrets are in the keyring, want the token and the key", len(all))
	}
	for _, secret := range ring.values() {
		holding(t, filepath.Dir(d.State), secret, "no file")
	}

	// A locked keyring blocks nobody, and nothing is kept elsewhere: the link's status
	// names the cause, and the link connects once the keyring is open.
	ring.mu.Lock()
	ring.locked = make(chan struct{})
	ring.mu.Unlock()
	config.Secrets.Keyring = keyring.New(ring)
	a = start(t, config)
	a.status("the links wait for the keyring", func(s localapi.Status) bool {
		return len(s.Hosts) == 2 && strings.Contains(s.Hosts[0].Error, "locked") && strings.Contains(s.Hosts[1].Error, "locked")
	})
	ring.mu.Lock()
	close(ring.locked)
	ring.locked = nil
	ring.mu.Unlock()
	a.status("both are online again", online)

	// A host that is forgotten is forgotten there, too.
	must.Get(a.client.Unpair(t.Context(), "plain"))(t)
	for _, v := range ring.values() {
		if v == "canary-token" {
			t.Error("the token of a host that was forgotten is still in the keyring")
		}
	}
	must.Get(a.client.Unpair(t.Context(), "keys"))(t)
	if all := ring.values(); len(all) > 0 {
		t.Errorf("no host is left, and %d secrets are in the keyring", len(all))
	}
}

// A host that could not be forgotten keeps its token: the next daemon would find the
// host, and nothing to get in with.
func TestAHostThatStaysKeepsItsToken(t *testing.T) {
	d := home(t)
	ring := &fakeRing{items: map[string]string{}}
	a := start(t, agent.Config{Dirs: d, Secrets: hosts.Secrets{Keyring: keyring.New(ring)}})
	must.Get(a.client.Pair(t.Context(), localapi.PairRequest{URL: startHost(t, "canary-token"), Token: "canary-token", Name: "plain"}))(t)
	name := filepath.Join(d.State, "hosts.json")
	must.Do(t, errors.Join(os.Rename(name, name+".away"), os.MkdirAll(filepath.Join(name, "in the way"), 0o700)))
	if _, err := a.client.Unpair(t.Context(), "plain"); err == nil {
		t.Fatal("a host was forgotten although nothing could be written")
	}
	if all := ring.values(); len(all) != 1 || all[0] != "canary-token" {
		t.Errorf("the keyring has %d secrets, want the token", len(all))
	}
}

// Which place it is, is decided once, and said.
func TestWhereSecretsAreKept(t *testing.T) {
	broken := errors.New("no such bus")
	for _, c := range []struct {
		name    string
		secrets hosts.Secrets
		want    string // of the person
		store   string
		why     string
		code    localapi.Code
	}{
		{"none", hosts.Secrets{}, "", "file", "not supported on this system", ""},
		{"no desktop", hosts.Secrets{Keyring: keyring.New(&fakeRing{broken: broken})}, "", "file", "no such bus", ""},
		{"locked", hosts.Secrets{Keyring: keyring.New(&fakeRing{locked: make(chan struct{})})}, "", "file", "locked", ""},
		{"a keyring", hosts.Secrets{Keyring: keyring.New(&fakeRing{items: map[string]string{}})}, "", "keyring", "", ""},
		{"the person wants a file", hosts.Secrets{Keyring: keyring.New(&fakeRing{items: map[string]string{}})}, "file", "file", "--store file was given", ""},
		{"a home of its own", hosts.Secrets{Keyring: keyring.New(&fakeRing{items: map[string]string{}}), File: "a home"}, "", "file", "a home", ""},
		{"but the keyring is wanted", hosts.Secrets{Keyring: keyring.New(&fakeRing{items: map[string]string{}}), File: "a home"}, "keyring", "keyring", "", ""},
		{"wanted, and broken", hosts.Secrets{Keyring: keyring.New(&fakeRing{broken: broken})}, "keyring", "", "", localapi.CodeCannotStart},
		{"nonsense", hosts.Secrets{}, "cloud", "", "", localapi.CodeBadRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := home(t)
			url := startHost(t, "x")
			a := start(t, agent.Config{Dirs: d, Secrets: c.secrets})
			_, err := a.client.Pair(t.Context(), localapi.PairRequest{URL: url, Token: "x", Store: c.want})
			if e, ok := errors.AsType[*localapi.Error](err); c.code != "" && (!ok || e.Code != c.code) || c.code == "" && err != nil {
				t.Fatalf("%v, want %q", err, c.code)
			}
			if c.code != "" {
				if _, err := os.Stat(filepath.Join(d.State, "hosts.json")); err == nil {
					t.Error("something was kept")
				}
				return
			}
			check := func(s localapi.Status) {
				t.Helper()
				if s.Secrets == nil || s.Secrets.Store != c.store || !strings.Contains(s.Secrets.Why, c.why) {
					t.Errorf("status says %+v, want %s because of %q", s.Secrets, c.store, c.why)
				}
			}
			check(a.status("it is paired", func(s localapi.Status) bool { return len(s.Hosts) == 1 }))
			other := map[string]string{"file": "keyring", "keyring": "file"}[c.store]
			if _, err := a.client.Pair(t.Context(), localapi.PairRequest{URL: url, Token: "x", Store: other}); err == nil {
				t.Error("it moves while hosts are paired")
			}
			a.end()

			// With another keyring it stays where it was.
			if c.store == "file" {
				c.secrets = hosts.Secrets{Keyring: keyring.New(&fakeRing{items: map[string]string{}})}
			}
			a = start(t, agent.Config{Dirs: d, Secrets: c.secrets})
			check(a.status("it is online", func(s localapi.Status) bool { return len(s.Hosts) == 1 && s.Hosts[0].State == "online" }))
		})
	}
}

// A key that the keyring does not let go is not said to be gone.
func TestAKeyThatStaysIsNoticed(t *testing.T) {
	d, k := home(t), startKeyHost(t)
	ring := &fakeRing{items: map[string]string{}}
	a := start(t, agent.Config{Dirs: d, Secrets: hosts.Secrets{Keyring: keyring.New(ring)}})
	k.pair(a, localapi.PairRequest{Name: "keys"}, "laptop")
	ring.mu.Lock()
	ring.broken = errors.New("the ring is stuck")
	ring.mu.Unlock()
	must.Get(a.client.Unpair(t.Context(), "keys"))(t)
	if len(ring.values()) != 1 {
		t.Fatal("the key is gone: nothing is tested")
	}
	testkit.Eventually(t, patience, "the log says that the key is kept", func() bool {
		f, err := secret.OpenRead(filepath.Join(d.State, "daemon.log"))
		if err != nil {
			return false
		}
		defer f.Close()
		log, err := io.ReadAll(f)
		return err == nil && strings.Contains(string(log), "the ring is stuck")
	})
}
