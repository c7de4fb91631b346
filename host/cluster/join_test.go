package cluster_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"tether/host/access"
	"tether/host/cluster"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
)

// refusal is why a node does not join.
func refusal(t *testing.T, o cluster.Options) *cluster.JoinError {
	t.Helper()
	n, err := cluster.Join(t.Context(), o)
	if err == nil {
		n.Close()
		t.Fatal("it joins")
	}
	why, ok := errors.AsType[*cluster.JoinError](err)
	if !ok || why.Hint == "" {
		t.Fatalf("%v: want what to do", err)
	}
	return why
}

// Servers that cannot carry a cluster are refused, each by one sentence that says why.
func TestJoinIsRefused(t *testing.T) {
	testkit.Leaks(t)
	small := filepath.Join(t.TempDir(), "small.conf")
	must.Do(t, os.WriteFile(small, []byte("max_payload: 64KB\n"), 0o600))
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"without JetStream": {nil, "have no JetStream"},
		"one server":        {[]string{"-js", "-sd", t.TempDir()}, "needs 3 replicas"},
		"credentials":       {[]string{"--user", "u", "--pass", "p"}, "refuse the credentials"},
		"short messages":    {[]string{"-c", small}, "takes messages of 65536 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			servers := testkit.StartNATS(t, tools, 1, c.args...)
			if why := refusal(t, cluster.Options{Servers: servers.URLs, Name: "test", HostKey: hostKey}); !strings.Contains(why.Message, c.want) {
				t.Errorf("%v, want %q", why, c.want)
			}
		})
	}
	if why := refusal(t, cluster.Options{Servers: "nats://127.0.0.1:1", Name: "test", HostKey: hostKey}); !strings.Contains(why.Message, "no NATS server answers") {
		t.Error(why)
	}
	if why := refusal(t, cluster.Options{Servers: "nats://127.0.0.1:1", Name: "a b", HostKey: hostKey}); !strings.Contains(why.Message, "no name") {
		t.Error(why)
	}
}

// All nodes have one host key, and know the version of the bucket's contents.
func TestJoinChecksTheCluster(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	if why := docsRefusal(t, servers.URLs); !strings.Contains(why.Message, "no cluster test") {
		t.Errorf("a command before any node: %v", why)
	}
	join(t, servers.URLs).Close()
	other := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize)).Public().(ed25519.PublicKey)
	if why := refusal(t, cluster.Options{Servers: servers.URLs, Name: "test", HostKey: other}); !strings.Contains(why.Message, "another host key") {
		t.Error(why)
	}
	n, err := cluster.Join(t.Context(), cluster.Options{Servers: servers.URLs, Name: "other", HostKey: other})
	if err != nil {
		t.Fatalf("another cluster has another key: %v", err)
	}
	n.Close()
	nc := must.Get(nats.Connect(servers.URLs))(t)
	defer nc.Close()
	js := must.Get(jetstream.New(nc))(t)
	kv := must.Get(js.KeyValue(t.Context(), "tether-test"))(t)
	must.Get(kv.PutString(t.Context(), "version", "2"))(t)
	testkit.Eventually(t, patience, "another version is refused", func() bool {
		n, err := cluster.Join(t.Context(), cluster.Options{Servers: servers.URLs, Name: "test", HostKey: hostKey})
		if err == nil { // the replica that was asked had the former one
			n.Close()
			return false
		}
		return strings.Contains(err.Error(), "has version 2")
	})
}

func docsRefusal(t *testing.T, servers string) *cluster.JoinError {
	t.Helper()
	var why *cluster.JoinError
	testkit.Eventually(t, patience, "the servers answer", func() bool {
		_, err := cluster.Documents(t.Context(), cluster.Options{Servers: servers, Name: "test"})
		var ok bool
		if why, ok = errors.AsType[*cluster.JoinError](err); !ok {
			t.Fatalf("%v, want a refusal", err)
		}
		return !strings.Contains(why.Message, "do not agree")
	})
	return why
}

// Tokens that are made and revoked at one node, or by a command, count at every other
// within two seconds, and connections of a revoked one end.
func TestTokensAreShared(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	open := func() (*cluster.Node, *access.Tokens) {
		n := join(t, servers.URLs)
		t.Cleanup(n.Close)
		tokens := must.Get(access.Open(n.Place("tokens")))(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); tokens.Run(ctx, nil) }()
		t.Cleanup(func() { cancel(); <-done })
		return n, tokens
	}
	_, a := open()
	_, b := open()
	docs := must.Get(cluster.Documents(t.Context(), cluster.Options{Servers: servers.URLs, Name: "test"}))(t)
	command := must.Get(access.Open(docs("tokens")))(t)
	var made []string
	for name, at := range map[string]*access.Tokens{"one": a, "two": b, "three": command} {
		token, _, err := at.Create(name, rights.RoleObserver, 0)
		must.Do(t, err)
		made = append(made, token)
	}
	var lives []context.Context
	for _, at := range []*access.Tokens{a, b} {
		for _, token := range made {
			testkit.Eventually(t, patience, "a token counts everywhere", func() bool {
				p, ok := at.Authenticate(token)
				if ok {
					lives = append(lives, p.Live)
				}
				return ok
			})
		}
	}
	for i, name := range []string{"one", "two", "three"} {
		at := []*access.Tokens{b, command, a}[i]
		began := time.Now()
		if revoked, err := at.Revoke(name); err != nil || len(revoked) != 1 {
			t.Fatalf("%v, %v", revoked, err)
		}
		testkit.Eventually(t, patience, "what it has opened ends", func() bool {
			ended := 0
			for _, live := range lives {
				if live.Err() != nil {
					ended++
				}
			}
			return ended == 2*(i+1)
		})
		t.Logf("revoked everywhere after %v", time.Since(began).Round(time.Millisecond))
	}
	if left, err := a.List(); err != nil || len(left) != 0 {
		t.Errorf("%v, %v are left", left, err)
	}
}

// Changes of several nodes at a time are all made, each once.
func TestDocumentsTakeEveryChange(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	const nodes, changes = 3, 10
	done := make(chan error, nodes)
	for range nodes {
		n := join(t, servers.URLs)
		t.Cleanup(n.Close)
		go func() {
			for range changes {
				if err := n.Place("counted").Change(func(old []byte) ([]byte, error) { return append(bytes.Clone(old), '.'), nil }); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range nodes {
		check.OK(t, <-done)
	}
	n := join(t, servers.URLs)
	defer n.Close()
	if data, err := n.Place("counted").Read(); err != nil || len(data) != nodes*changes {
		t.Errorf("%d changes were made, want %d; %v", len(data), nodes*changes, err)
	}
}

// No two nodes own a machine's terminals in one epoch, however many take them at a time,
// and epochs only grow.
func TestEpochsHaveOneOwner(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	const nodes, turns = 3, 10
	epochs := make(chan int64, nodes*turns)
	done := make(chan error, nodes)
	for range nodes {
		n := join(t, servers.URLs)
		t.Cleanup(n.Close)
		go func() {
			last := int64(0)
			for range turns {
				epoch, err := n.Own(t.Context(), "laptop", last)
				if err == nil && epoch <= last {
					err = errors.New("an epoch is not greater than the last")
				}
				if err != nil {
					done <- err
					return
				}
				last = epoch
				epochs <- epoch
			}
			done <- nil
		}()
	}
	for range nodes {
		must.Do(t, <-done)
	}
	close(epochs)
	seen := map[int64]bool{}
	for e := range epochs {
		if seen[e] {
			t.Errorf("epoch %d has two owners", e)
		}
		seen[e] = true
	}
}

// Whose a clientId is counts at every node, until its principal has no token any more.
func TestOwnersAreShared(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, tools)
	a, b := join(t, servers.URLs), join(t, servers.URLs)
	defer a.Close()
	defer b.Close()
	tokens := must.Get(access.Open(a.Place("tokens")))(t)
	for _, name := range []string{"laptop", "thief"} {
		if _, _, err := tokens.Create(name, rights.RoleMachine, 0); err != nil {
			t.Fatal(err)
		}
	}
	testkit.Eventually(t, patience, "the tokens are known", func() bool { _, ok := tokens.Named("laptop", rights.RoleMachine); return ok })
	if ours, err := a.Owners(tokens).Own("id", "laptop"); !ours || err != nil {
		t.Fatalf("%t, %v", ours, err)
	}
	if ours, err := b.Owners(tokens).Own("id", "thief"); ours || err != nil {
		t.Errorf("another takes it: %t, %v", ours, err)
	}
	must.Get(tokens.Revoke("laptop"))(t)
	testkit.Eventually(t, patience, "it is free", func() bool {
		tokens.Named("", rights.RoleMachine) // looks
		_, ok := b.Owners(tokens).Owner("id")
		return !ok
	})
	if ours, err := b.Owners(tokens).Own("id", "thief"); !ours || err != nil {
		t.Errorf("it is free, and not given: %t, %v", ours, err)
	}
}
