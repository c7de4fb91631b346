package access_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tether/host/access"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/secret"
)

const patience = testkit.Patience

func open(t *testing.T, path string) *access.Tokens {
	t.Helper()
	return must.Get(access.Open(access.File(path)))(t)
}

func create(t *testing.T, tokens *access.Tokens, name string, role rights.Role, ttl time.Duration) (string, access.Info) {
	t.Helper()
	token, info, err := tokens.Create(name, role, ttl)
	must.Do(t, err)
	return token, info
}

// running looks at the file as a host does, until the test ends.
func running(t *testing.T, tokens *access.Tokens, onError func(error)) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); tokens.Run(ctx, onError) }()
	t.Cleanup(func() { cancel(); <-done })
}

func TestATokenIsKnownToAHostThatRuns(t *testing.T) {
	testkit.Leaks(t)
	path := filepath.Join(t.TempDir(), "new", "tokens.json")
	atHost := open(t, path)
	running(t, atHost, nil)
	token, info := create(t, open(t, path), "laptop", rights.RoleMachine, 0)
	if len(token) < 43 || info.Principal != "laptop" || info.Role != rights.RoleMachine || info.Expires != nil {
		t.Errorf("created %d characters, %+v", len(token), info)
	}
	data, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(data), token) || strings.Contains(string(data), token[len(token)-20:]) {
		t.Errorf("the file holds the token, or %v", err)
	}
	var p rights.Principal
	testkit.Eventually(t, patience, "the host knows the token", func() (ok bool) { p, ok = atHost.Authenticate(token); return ok })
	if p.Name != "laptop" || p.Role != rights.RoleMachine || p.Live.Err() != nil {
		t.Errorf("the token is for %+v", p)
	}
	for _, wrong := range []string{"", token[:len(token)-1], token + "x", info.ID, "laptop", strings.ToUpper(token)} {
		if p, ok := atHost.Authenticate(wrong); ok {
			t.Errorf("%q is taken for %+v", wrong, p)
		}
	}
	revoked, err := open(t, path).Revoke(info.ID)
	if err != nil || len(revoked) != 1 || revoked[0].Principal != "laptop" {
		t.Errorf("revoked %+v, %v", revoked, err)
	}
	select {
	case <-p.Live.Done():
	case <-time.After(patience):
		t.Fatal("what the token had opened did not end")
	}
	if !errors.Is(context.Cause(p.Live), access.ErrRevoked) {
		t.Errorf("it ended with %v", context.Cause(p.Live))
	}
	if p, ok := atHost.Authenticate(token); ok {
		t.Errorf("the revoked token is taken for %+v", p)
	}
}

func TestTokensExpire(t *testing.T) {
	tokens := open(t, filepath.Join(t.TempDir(), "state", "tokens.json"))
	token, info := create(t, tokens, "guest", rights.RoleObserver, time.Second)
	if info.Expires == nil {
		t.Fatalf("%+v does not expire", info)
	}
	running(t, tokens, nil)
	var live context.Context
	listed := func() access.Info {
		all, err := tokens.List()
		if err != nil || len(all) != 1 {
			t.Fatalf("listed %+v, %v", all, err)
		}
		return all[0]
	}
	testkit.Eventually(t, patience, "the token is known, or its time is over already", func() bool {
		p, ok := tokens.Authenticate(token)
		live = p.Live
		return ok || listed().Expired
	})
	testkit.Eventually(t, patience, "the token expires", func() bool { return listed().Expired })
	if _, ok := tokens.Authenticate(token); ok {
		t.Error("it works still")
	}
	if live != nil {
		<-live.Done()
		if !errors.Is(context.Cause(live), access.ErrExpired) {
			t.Errorf("what it had opened ended with %v", context.Cause(live))
		}
	}
}

// Several of one name are for changing a token without an interruption.
func TestTokensOfOneName(t *testing.T) {
	tokens := open(t, filepath.Join(t.TempDir(), "state", "tokens.json"))
	first, _ := create(t, tokens, "bot", rights.RoleAgent, 0)
	second, info := create(t, tokens, "bot", rights.RoleAgent, time.Hour)
	if _, _, err := tokens.Create("bot", rights.RoleAdmin, 0); err == nil || !strings.Contains(err.Error(), "one name has one role") {
		t.Errorf("another role under the name: %v", err)
	}
	works := func(token string) bool { _, ok := tokens.Authenticate(token); return ok }
	testkit.Eventually(t, patience, "both tokens work", func() bool { return works(first) && works(second) })
	must.Get(tokens.Revoke(info.ID))(t)
	running(t, tokens, nil)
	testkit.Eventually(t, patience, "the second is revoked", func() bool { return !works(second) })
	if !works(first) {
		t.Error("the first was revoked with it")
	}
	if revoked, err := tokens.Revoke("bot"); err != nil || len(revoked) != 1 {
		t.Errorf("the name's: %v, %v", revoked, err)
	}
	if _, err := tokens.Revoke("bot"); !errors.Is(err, access.ErrNoToken) {
		t.Errorf("again: %v, want ErrNoToken", err)
	}
}

func TestManyCommandsAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "tokens.json")
	const n = 8
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if _, _, err := open(t, path).Create(fmt.Sprint("m", i), rights.RoleMachine, 0); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if list, err := open(t, path).List(); err != nil || len(list) != n {
		t.Errorf("%d tokens, %v; want %d", len(list), err, n)
	}
}

func TestRefusedTokens(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	must.Do(t, secret.Dir(dir))
	tokens := open(t, filepath.Join(dir, "tokens.json"))
	for _, c := range []struct {
		name string
		role rights.Role
		ttl  time.Duration
		want string
	}{
		{"", rights.RoleAgent, 0, "1 to 64"},
		{strings.Repeat("x", 65), rights.RoleAgent, 0, "1 to 64"},
		{"a b", rights.RoleAgent, 0, "letter or digit"},
		{"-a", rights.RoleAgent, 0, "letter or digit"},
		{"a\x1b[2J", rights.RoleAgent, 0, "letter or digit"},
		{"ok", "root", 0, `unknown role "root"`},
		{"ok", "", 0, "unknown role"},
		{"ok", rights.RoleAgent, -time.Second, "before"},
	} {
		if _, _, err := tokens.Create(c.name, c.role, c.ttl); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %q %v: %v, want %q", c.name, c.role, c.ttl, err, c.want)
		}
	}
	for text, want := range map[string]string{
		`{`: "repair", `{"version":2,"tokens":[]}`: "version 2", `{"version":1,"more":1}`: "remove the field",
		`{"version":1,"tokens":[{"id":"t-1","principal":"a","role":"king","sha256":"","created":"2026-01-01T00:00:00Z"}]}`: "remove it",
	} {
		path := filepath.Join(dir, "bad.json")
		must.Do(t, secret.WriteFile(path, []byte(text)))
		if _, err := access.Open(access.File(path)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// A file that is damaged while a host runs locks nobody out.
func TestDamagedWhileAHostRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "tokens.json")
	tokens := open(t, path)
	token, _ := create(t, tokens, "laptop", rights.RoleMachine, 0)
	testkit.Eventually(t, patience, "the token works", func() bool { _, ok := tokens.Authenticate(token); return ok })
	told := make(chan error, 10)
	running(t, tokens, func(err error) { told <- err })
	good := must.Get(os.ReadFile(path))(t)
	for _, c := range []struct {
		text string
		bad  bool
	}{{"{", true}, {string(good), false}} {
		must.Do(t, secret.WriteFile(path, []byte(c.text)))
		if err := <-told; (err != nil) != c.bad {
			t.Errorf("with %.10q: told %v", c.text, err)
		}
		if _, ok := tokens.Authenticate(token); !ok {
			t.Errorf("with %.10q the token does not work", c.text)
		}
	}
}
