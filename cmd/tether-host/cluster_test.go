package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tether/ahp"
	"tether/ahp/client"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

const clusterTools = "../../bin/tools"

// copyKey gives the node whose tokens are at to the host key of the one at from.
func copyKey(t *testing.T, from, to string) {
	t.Helper()
	key, err := os.ReadFile(keyPath(from))
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o700)
	}
	if err == nil {
		err = os.WriteFile(keyPath(to), key, 0o600)
	}
	must.Do(t, err)
}

// failing runs the command, which must end with the status of a usage error, and returns
// its message.
func failing(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if status := run(t.Context(), args, &out, &out); status != exitUsage {
		t.Fatalf("%v: status %d, want %d: %s", args, status, exitUsage, out.String())
	}
	return out.String()
}

// Two hosts with the same servers are one: what commands do at one counts at both, and
// who is at one sees the terminals of a machine at the other. A node with another key
// does not join; a host that leaves the cluster has its files again.
func TestNodes(t *testing.T) {
	testkit.Leaks(t)
	servers := testkit.StartJetStream(t, clusterTools)
	dir := t.TempDir()
	var files []string
	for _, name := range []string{"a", "b", "c"} {
		files = append(files, filepath.Join(dir, name, "tokens.json"))
	}
	a := start(t, "--token", ownToken, "--tokens", files[0], "--nats", servers.URLs)
	if out := failing(t, "--listen", "127.0.0.1:0", "--tokens", files[2], "--nats", servers.URLs); !strings.Contains(out, "another host key") || !strings.Contains(out, "host-key.pem") {
		t.Errorf("a node with its own key: %s", out)
	}
	copyKey(t, files[0], files[1])
	b := start(t, "--token", ownToken, "--tokens", files[1], "--nats", servers.URLs)
	laptop := command(t, exitOK, "token", "create", "laptop", "--tokens", files[0])
	ann := command(t, exitOK, "token", "create", "ann", "--role", "observer", "--tokens", files[1])
	for _, file := range files[:2] {
		if out := command(t, exitOK, "token", "ls", "--tokens", file); !strings.Contains(out, "laptop") || !strings.Contains(out, "ann") {
			t.Errorf("the tokens at %s: %s", file, out)
		}
		if out := command(t, exitOK, "pending", "--tokens", file); !strings.Contains(out, "CODE") {
			t.Errorf("who waits at %s: %s", file, out)
		}
	}
	machine := must.Get(connect(t, a, laptop, client.Options{ClientID: "laptops", Meta: ahp.NewClientMeta()}))(t)
	const uri = "ahp-terminal:/6d1e"
	must.Do(t, machine.CreateTerminal(t.Context(), ahp.CreateTerminalParams{Channel: uri, Claim: ahp.ClientClaim("laptops"), ExecutionTarget: ahp.TargetClient}))
	observer := must.Get(connect(t, b, ann, client.Options{ClientID: "anns"}))(t)
	testkit.Eventually(t, patience, "who is at the other node sees the terminal", func() bool {
		r, err := observer.Subscribe(t.Context(), uri)
		return err == nil && r.Snapshot != nil
	})
	if out := command(t, exitOK, "token", "revoke", "ann", "--tokens", files[0]); !strings.Contains(out, "ann") {
		t.Error(out)
	}
	testkit.Eventually(t, patience, "a token that was revoked at one node ends at the other", func() bool { return observer.Err() != nil })
	b.end(t)
	alone := start(t, "--token", ownToken, "--tokens", files[1])
	if out := command(t, exitOK, "token", "ls", "--tokens", files[1]); strings.Contains(out, "laptop") {
		t.Errorf("a host without --nats has the cluster's tokens: %s", out)
	}
	alone.end(t)
	machine.Close()
}

// status is the answer to a GET at a path of the host.
func status(t *testing.T, r *running, path string) int {
	t.Helper()
	q := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, strings.Replace(r.url, "ws", "http", 1)+path, nil))(t)
	q.Close = true
	resp := must.Get(http.DefaultClient.Do(q))(t)
	resp.Body.Close()
	return resp.StatusCode
}

// Load balancers are told, without a token, that the host serves, and whether it takes
// machines; a node that does not reach its cluster does not.
func TestHealth(t *testing.T) {
	testkit.Leaks(t)
	alone := start(t, "--token", ownToken)
	if health, ready, other := status(t, alone, "/healthz"), status(t, alone, "/readyz"), status(t, alone, "/healthz/x"); health != 200 || ready != 200 || other == 200 {
		t.Errorf("alone: %d, %d, another path %d", health, ready, other)
	}
	servers := testkit.StartJetStream(t, clusterTools)
	node := start(t, "--token", ownToken, "--nats", servers.URLs)
	if ready := status(t, node, "/readyz"); ready != 200 {
		t.Errorf("a node: %d", ready)
	}
	for i := range 3 {
		servers.Kill(i)
	}
	testkit.Eventually(t, patience, "it is not ready without NATS", func() bool { return status(t, node, "/readyz") == 503 })
	if health := status(t, node, "/healthz"); health != 200 {
		t.Errorf("it serves, and says %d", health)
	}
	for i := range 3 {
		servers.Start(i)
	}
	testkit.Eventually(t, patience, "it is ready again", func() bool { return status(t, node, "/readyz") == 200 })
}

// The node at which a machine is may be killed again and again while the machine's
// terminals flood it: the machine goes on at another address, and who watches at a node
// that lives has every byte once.
func TestNodesAreKilled(t *testing.T) {
	servers := testkit.StartJetStream(t, clusterTools)
	s := newStage(t)
	const lent = 2
	var files []string
	args := func(n int) []string {
		return []string{"--tokens", files[n], "--nats", servers.URLs, "--grace", "30m", "--scrollback", "8000000"}
	}
	for n := range 3 {
		files = append(files, filepath.Join(s.dir, fmt.Sprint("node", n), "tokens.json"))
	}
	var nodes [3]*exec.Cmd
	var addresses [3]string
	for n := range 3 {
		if n > 0 {
			copyKey(t, files[0], files[n])
		}
		nodes[n], addresses[n] = s.host(t, "127.0.0.1:0", args(n)...)
	}
	kill := func(n int) {
		must.Do(t, nodes[n].Process.Kill())
		_ = nodes[n].Wait() // it was killed
	}
	kill(1) // so that the machine is at node 0
	once := s.do(t, "tether-host", "token", "create", "laptop", "--once", "--tokens", files[2])
	token := filepath.Join(s.dir, "laptop.token")
	must.Do(t, os.WriteFile(token, []byte(once), 0o600))
	m := s.machine(t)
	m.do(t, "tether", "pair", "--token-file", token, "ws://"+addresses[0], "ws://"+addresses[1])
	for range lent {
		m.do(t, "tether", "run", "--detach", "--", "/bin/sh", "-c", aFlood)
	}
	own := must.Get(os.ReadFile(filepath.Join(s.dir, "own.token")))(t)
	var a audience
	a.watch(t, client.Endpoint{URL: "ws://" + addresses[2], Token: strings.TrimSpace(string(own))})
	printed := 0 // parts of the flood
	for round := range testkit.Rounds(t, testkit.Number(t, "TETHER_TEST_KILLS", 5), 200) {
		more := 1
		if round >= 5 { // a machine that loses many short connections in a row takes its time
			more = 3
		}
		for part := range more {
			must.Do(t, os.WriteFile(filepath.Join(s.dir, fmt.Sprint("part", printed+part)), nil, 0o600))
		}
		printed += more
		a.await(t, lent, floodSize(printed-1)+20_000, "all terminals flood the node that will be killed")
		owner, next := round%2, (round+1)%2
		nodes[next], _ = s.host(t, addresses[next], args(next)...)
		kill(owner)
		a.await(t, lent, floodSize(printed), fmt.Sprintf("all terminals go on after kill %d", round+1))
	}
	must.Do(t, os.WriteFile(filepath.Join(s.dir, "stop"), nil, 0o600))
	testkit.Eventually(t, restartPatience, "the ends", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		n := 0
		for _, over := range a.ended {
			if over {
				n++
			}
		}
		return n == lent
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	for uri, text := range a.texts {
		if err := whole(string(text)); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// A node that is stopped without a word, as one is that the system has frozen, is left by
// its machines for another one. When it goes on, it lets go of what it had: who watches
// at a third node has every byte once.
func TestFrozenNode(t *testing.T) {
	servers := testkit.StartJetStream(t, clusterTools)
	s := newStage(t)
	var nodes [3]*exec.Cmd
	var addresses, files [3]string
	for n := range 3 {
		files[n] = filepath.Join(s.dir, fmt.Sprint("node", n), "tokens.json")
		if n > 0 {
			copyKey(t, files[0], files[n])
		}
		nodes[n], addresses[n] = s.host(t, "127.0.0.1:0", "--tokens", files[n], "--nats", servers.URLs, "--grace", "30m", "--scrollback", "8000000", "--log-level", "info")
	}
	once := s.do(t, "tether-host", "token", "create", "laptop", "--once", "--tokens", files[2])
	token := filepath.Join(s.dir, "laptop.token")
	must.Do(t, os.WriteFile(token, []byte(once), 0o600))
	m := s.machine(t)
	stopped := func(n int, stop bool) {
		signal := "-CONT"
		if stop {
			signal = "-STOP"
		}
		s.do(t, "kill", signal, fmt.Sprint(nodes[n].Process.Pid))
	}
	stopped(1, true) // so that the machine comes to node 0
	m.do(t, "tether", "pair", "--token-file", token, "ws://"+addresses[0], "ws://"+addresses[1])
	m.do(t, "tether", "run", "--detach", "--", "/bin/sh", "-c", aFlood)
	own := must.Get(os.ReadFile(filepath.Join(s.dir, "own.token")))(t)
	var a audience
	a.watch(t, client.Endpoint{URL: "ws://" + addresses[2], Token: strings.TrimSpace(string(own))})
	for part := range 3 {
		must.Do(t, os.WriteFile(filepath.Join(s.dir, fmt.Sprint("part", part)), nil, 0o600))
		a.await(t, 1, floodSize(part)+20_000, "the terminal floods the node that will be frozen")
		stopped((part+1)%2, false)
		stopped(part%2, true)
		a.await(t, 1, floodSize(part+1), fmt.Sprintf("the terminal goes on after node %d was frozen", part%2))
	}
	stopped(0, false)
	a.awaitWhole(t, s)
}

// Flags that contradict each other are refused before anything is asked.
func TestClusterFlags(t *testing.T) {
	for _, args := range [][]string{{"--nats-creds", "f"}, {"--nats", "nats://127.0.0.1:1", "--without-token"},
		{"--rights-grace", "0s"}, {"--cluster", "other"}, {"--nats", "nats://127.0.0.1:1", "--rights-grace", "1s"}, {"--nats", "nats://127.0.0.1:1", "--rights-grace", "25h"}, {"--nats", "nats://127.0.0.1:1", "--cluster", "a b"}} {
		if out := failing(t, append([]string{"--listen", "127.0.0.1:0", "--tokens", filepath.Join(t.TempDir(), "tokens.json")}, args...)...); out == "" {
			t.Errorf("%v: no word", args)
		}
	}
}

// awaitWhole ends the flood and checks that every byte of it was shown once.
func (a *audience) awaitWhole(t *testing.T, s *stage) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(s.dir, "stop"), nil, 0o600))
	testkit.Eventually(t, restartPatience, "the end", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, over := range a.ended {
			if over {
				return true
			}
		}
		return false
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	for uri, text := range a.texts {
		if err := whole(string(text)); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
	}
}
