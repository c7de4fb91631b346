package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tether/ahp/client"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// Nodes may be replaced one after the other, as in an upgrade, while a machine's terminal
// floods the one that is stopped: the machine goes to another one because it is told to,
// and who watches at a third node has every byte once.
func TestNodesAreReplaced(t *testing.T) {
	servers := testkit.StartJetStream(t, clusterTools)
	s := newStage(t)
	var nodes [3]*exec.Cmd
	var addresses, files [3]string
	args := func(n int) []string {
		return []string{"--tokens", files[n], "--nats", servers.URLs, "--grace", "30m", "--scrollback", "8000000"}
	}
	for n := range 3 {
		files[n] = filepath.Join(s.dir, fmt.Sprint("node", n), "tokens.json")
		if n > 0 {
			copyKey(t, files[0], files[n])
		}
		nodes[n], addresses[n] = s.host(t, "127.0.0.1:0", args(n)...)
	}
	stop := func(n int) {
		t.Helper()
		must.Do(t, nodes[n].Process.Signal(syscall.SIGTERM))
		if err := nodes[n].Wait(); err != nil {
			t.Fatalf("a node that is stopped: %v", err)
		}
	}
	stop(1) // so that the machine is at node 0
	once := s.do(t, "tether-host", "token", "create", "laptop", "--once", "--tokens", files[2])
	token := filepath.Join(s.dir, "laptop.token")
	must.Do(t, os.WriteFile(token, []byte(once), 0o600))
	m := s.machine(t)
	m.do(t, "tether", "pair", "--token-file", token, "ws://"+addresses[0], "ws://"+addresses[1])
	m.do(t, "tether", "run", "--detach", "--", "/bin/sh", "-c", aFlood)
	own := must.Get(os.ReadFile(filepath.Join(s.dir, "own.token")))(t)
	var a audience
	a.watch(t, client.Endpoint{URL: "ws://" + addresses[2], Token: strings.TrimSpace(string(own))})
	size := func() (n int) {
		a.mu.Lock()
		defer a.mu.Unlock()
		for _, text := range a.texts {
			n += len(text)
		}
		return n
	}
	const turns = 3
	for part := range turns {
		owner, next := part%2, (part+1)%2
		nodes[next], _ = s.host(t, addresses[next], args(next)...)
		must.Do(t, os.WriteFile(filepath.Join(s.dir, fmt.Sprint("part", part)), nil, 0o600))
		a.await(t, 1, floodSize(part)+20_000, "the terminal floods the node that will be stopped")
		stop(owner)
		longest, last, since := time.Duration(0), size(), time.Now()
		testkit.Eventually(t, restartPatience, "all of it is at the third node", func() bool {
			n := size()
			if n > last {
				longest, last, since = max(longest, time.Since(since)), n, time.Now()
			}
			return n >= floodSize(part+1)
		})
		t.Logf("node %d was replaced: the longest pause at node 2 was %v", owner, longest.Round(time.Millisecond))
	}
	a.awaitWhole(t, s)
	if told := strings.Count(m.do(t, "tether", "logs"), "the host is going away"); told < turns {
		t.Errorf("the machine was told %d times to go, want %d:\n%s", told, turns, m.do(t, "tether", "logs"))
	}
}
