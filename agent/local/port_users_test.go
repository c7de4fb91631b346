//go:build linux

package local_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tether/agent/local"
	"tether/agent/localapi"
	"tether/agent/localclient"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

// complains starts a terminal of an owner whose program says that a port is taken.
func (d *real) complains(t *testing.T, owner term.Actor, port int) (id string) {
	t.Helper()
	line := fmt.Sprintf("echo 'listen tcp 127.0.0.1:%d: bind: address already in use'", port)
	h := must.Get(d.pool.As(owner).Spawn(term.Spec{Command: []string{"sh", "-c", line}, Cwd: t.TempDir(), Env: d.env}))(t)
	testkit.Eventually(t, patience, "its end", func() bool { return h.Info().Exit != nil })
	return string(h.ID())
}

// Whoever may see the terminal that has a port is told its name; others are not.
func TestWhoHasThePort(t *testing.T) {
	d := openReal(t, local.Options{})
	person := localclient.New(d.socket)
	defer person.Close()
	_, outside, _ := elsewhere(t)
	bobs, _, bobsPort := d.served(t, term.Agent("bob"), "x")
	seen, _, seenPort := d.served(t, term.User, "x")
	hidden := must.Get(d.pool.As(term.User).Spawn(term.Spec{Command: []string{"sh", "-c", `exec "$SELF" > out`}, Cwd: t.TempDir(), Private: true, Name: "secret",
		Env: append(slices.Clip(d.env), sayVar+"=serve 127.0.0.1:0 x")}))(t)
	var hiddenPort int
	testkit.Eventually(t, patience, "the private server", func() bool {
		all := must.Get(proc.Listeners([]proc.Terminal{{ID: string(hidden.ID()), Pid: hidden.Info().Pid}}))(t)[string(hidden.ID())]
		if len(all) > 0 {
			hiddenPort = int(all[0].Addr.Port())
		}
		return len(all) > 0
	})
	closed := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	free := closed.Addr().(*net.TCPAddr).Port
	closed.Close()

	const other = "another program of this user"
	for _, c := range []struct {
		who  string
		port int
		want string // a part of it
	}{
		{"", seenPort, ", " + seen}, {"", bobsPort, bobs}, {"", hiddenPort, string(hidden.ID())}, {"", outside, "outside tether"}, {"", free, "is free now"},
		{"bob", bobsPort, bobs}, {"bob", seenPort, seen}, {"bob", hiddenPort, other}, {"bob", outside, other}, {"bob", free, "is free now"},
		{"eve", bobsPort, other}, {"eve", seenPort, seen}, {"eve", hiddenPort, other},
	} {
		client, actor := person, term.User
		if c.who != "" {
			client, actor = person.As(c.who), term.Agent(c.who)
		}
		got := must.Get(client.Problems(t.Context(), d.complains(t, actor, c.port), localclient.ProblemOptions{}))(t)
		if len(got.Problems) != 1 || !strings.HasPrefix(got.Problems[0].Taken, fmt.Sprintf("%d is ", c.port)) || !strings.Contains(got.Problems[0].Taken, c.want) {
			t.Errorf("%q asks for %d: %+v, want %q", c.who, c.port, got.Problems, c.want)
		}
		if c.want == other && got.Problems[0].Taken != fmt.Sprintf("%d is used by %s", c.port, other) {
			t.Errorf("%q asks for %d, and learns more: %s", c.who, c.port, got.Problems[0].Taken)
		}
	}
	// An agent at a host is told nothing.
	if users := local.PortUsersOf(d.server, term.AgentAt("lab", "x"), []int{bobsPort, seenPort, outside}); len(users) != 0 {
		t.Errorf("an agent at a host learns %v", users)
	}
}

// The person's list has all ports, an agent's those of terminals that it sees.
func TestUserPorts(t *testing.T) {
	d := openReal(t, local.Options{})
	person := localclient.New(d.socket)
	defer person.Close()
	_, outside, _ := elsewhere(t)
	bobs, _, bobsPort := d.served(t, term.Agent("bob"), "x")
	seen, _, seenPort := d.served(t, term.User, "x")
	repo := must.Get(d.pool.As(term.User).Terminal(term.ID(seen)))(t).Info().Cwd
	if err := os.MkdirAll(filepath.Join(repo, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	must.Do(t, os.WriteFile(filepath.Join(repo, ".git", "HEAD"), []byte("ref: refs/heads/feat/login\n"), 0o600))
	find := func(who string, port int) (found *localapi.UserPort) {
		client := person
		if who != "" {
			client = person.As(who)
		}
		for _, p := range must.Get(client.AllPorts(t.Context()))(t).Ports {
			if p.Port == port {
				found = &p
			}
			if who != "" && (p.Outside || p.Terminal == "") {
				t.Errorf("%s sees %+v", who, p)
			}
		}
		return found
	}
	if p := find("", seenPort); p == nil || p.Terminal != seen || p.Name != "sh" || p.Directory != repo || p.Outside || len(p.Command) == 0 || p.Address != "127.0.0.1" {
		t.Errorf("the person's: %+v", p)
	}
	testkit.Eventually(t, patience, "its checkout", func() bool {
		p := find("", seenPort)
		return p != nil && p.Checkout != nil && p.Checkout.Branch == "feat/login" && p.Checkout.Worktree == repo
	})
	if p := find("", outside); p == nil || !p.Outside || p.Terminal != "" || p.Pid != os.Getpid() {
		t.Errorf("outside: %+v", p)
	}
	if p := find("", bobsPort); p == nil || p.Terminal != bobs {
		t.Errorf("an agent's, to the person: %+v", p)
	}
	for _, c := range []struct {
		who  string
		port int
		sees bool
	}{{"bob", bobsPort, true}, {"bob", seenPort, true}, {"bob", outside, false}, {"eve", bobsPort, false}, {"eve", seenPort, true}} {
		if p := find(c.who, c.port); (p != nil) != c.sees {
			t.Errorf("%s sees %d: %+v", c.who, c.port, p)
		}
	}
}
