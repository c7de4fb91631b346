package main

import (
	"net"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// A person closes a machine, as the host sees it: status and unlend say what the host may
// keep, watch --list shows it there as away, and when the machine is back, what was
// unlent meanwhile is gone and the rest goes on; while the host is connected, unlend
// removes at once. unpair says the same as unlend.
func TestWhatAHostKeepsWhileTheMachineIsAway(t *testing.T) {
	testkit.Unix(t, testkit.Programs)
	newHome(t)
	configure(t, "lend.park", "2h")
	h := host.New(host.Options{Grace: time.Millisecond, Park: time.Hour})
	server := httptest.NewServer(h)
	var away atomic.Bool
	proxy := testkit.NewProxy(t, func() (net.Conn, error) {
		if away.Load() {
			return nil, net.ErrClosed
		}
		return net.Dial("tcp", server.Listener.Addr().String())
	}, func(int) testkit.Fault { return testkit.Fault{} })
	t.Cleanup(func() { proxy.Close(); server.Close(); h.Close() })
	if out, status := command(t, "pair", "--without-token", "--name", "lab", "ws://"+proxy.Listen(t)); status != 0 {
		t.Fatalf("pair: %d %s", status, out)
	}
	says := func(args ...string) string {
		out, _ := exec.Command("tether", args...).CombinedOutput() // what it says tells
		return string(out)
	}
	testkit.Eventually(t, patience, "the person is told how long the host keeps text", func() bool {
		return strings.Contains(says("status"), "keeps shared text for up to 1h while this machine is away")
	})
	command(t, "run", "--detach", "--name", "web", "--", "sh", "-c", "echo ready; read x")
	command(t, "run", "--detach", "--name", "db", "--", "sh", "-c", "echo ready; read x")
	lent := func(state string, n int) func() bool {
		return func() bool {
			got := 0
			for _, one := range h.Lent() {
				if one.State == state && one.Bytes > 0 {
					got++
				}
			}
			return got == n
		}
	}
	testkit.Eventually(t, patience, "both are at the host", lent("running", 2))
	list := func() string {
		return says("watch", "--without-token", "--list", "ws://"+server.Listener.Addr().String())
	}
	watched := exec.Command("tether", "watch", "--without-token", "ws://"+server.Listener.Addr().String(), "web")
	var seen testkit.Output
	watched.Stdout, watched.Stderr = &seen, &seen
	must.Do(t, watched.Start())
	testkit.Eventually(t, patience, "it is watched", func() bool { return strings.Contains(seen.String(), "ready") })
	away.Store(true)
	proxy.Cut()
	testkit.Eventually(t, patience, "both are parked", func() bool { return strings.Count(list(), "away since ") == 2 })
	if err := watched.Wait(); err != nil || !strings.Contains(seen.String(), "the terminal's machine is away; the host keeps this until ") {
		t.Errorf("who watched was told %s, %v", seen.String(), err)
	}
	if out, status := command(t, "watch", "--without-token", "ws://"+server.Listener.Addr().String(), "web"); status != 0 || strings.TrimSpace(out) != "ready" {
		t.Errorf("watched while it is away: %d %q", status, out)
	}
	testkit.Eventually(t, patience, "the daemon notices", func() bool { return strings.Contains(says("status"), "may keep the text of 2 terminals") })
	if out := says("unlend", "db"); !strings.Contains(out, "lab is offline and may still show what it has of it; it deletes that when it reconnects, at ") {
		t.Errorf("unlend: %s", out)
	}
	if out := says("status"); !strings.Contains(out, "may keep the text of 2 terminals while it is offline, until ") || !strings.Contains(out, "1 no longer shared, which it deletes when it reconnects") {
		t.Errorf("status: %s", out)
	}
	if out := list(); strings.Count(out, "away since ") != 2 {
		t.Errorf("while it is away: %s", out)
	}
	away.Store(false)
	testkit.Eventually(t, patience, "one is back, the other one gone", func() bool { return lent("running", 1)() && lent("away", 0)() })
	if out := list(); strings.Contains(out, "away since ") {
		t.Errorf("when it is back: %s", out)
	}
	if out := says("unlend", "web"); strings.Contains(out, "may still show") {
		t.Errorf("online: %s", out)
	}
	testkit.Eventually(t, patience, "nothing is left", func() bool { return len(h.Lent()) == 0 })
	command(t, "lend", "web")
	testkit.Eventually(t, patience, "it is lent again", lent("running", 1))
	away.Store(true)
	proxy.Cut()
	testkit.Eventually(t, patience, "the daemon notices again", func() bool { return strings.Contains(says("status"), "may keep the text of 1 terminal ") })
	if out := says("unpair", "lab"); !strings.Contains(out, "the host is offline and may still show what it has of 1 terminal, until ") {
		t.Errorf("unpair: %s", out)
	}
}
