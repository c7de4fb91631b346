package adopt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tether/agent/adopt"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// TestSocketsOfOthers refuses the server of another user, and a socket that another user
// may have put there.
func TestSocketsOfOthers(t *testing.T) {
	t.Parallel()
	s := startServer(t, "exec cat")
	if _, err := exec.LookPath("setpriv"); err != nil || os.Getuid() != 0 {
		t.Skip("only root can start a server as another user")
	}
	dir := must.Get(testkit.MakeHome())(t)
	t.Cleanup(func() { must.Do(t, testkit.RemoveHome(dir)) })
	const nobody = 65534
	must.Do(t, os.Chown(dir, nobody, nobody))
	socket := filepath.Join(dir, "s")
	as := func(args ...string) *exec.Cmd {
		c := exec.Command("setpriv", append([]string{"--reuid=65534", "--regid=65534", "--clear-groups", "tmux", "-S", socket, "-f", "/dev/null"}, args...)...)
		c.Dir, c.Env = dir, append(os.Environ(), "HOME="+dir)
		return c
	}
	if out, err := as("new-session", "-d", "exec cat").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { _ = as("kill-server").Run() })
	must.Do(t, os.Chmod(socket, 0o777))
	target := adopt.Target{Program: "tmux", Server: socket, Pane: "%0"}
	refused := (*adopt.RefusedError)(nil)
	if _, err := adopt.Find(context.Background(), s.options(), target); !errors.As(err, &refused) {
		t.Errorf("the pane of another user: %v", err)
	}
	link := filepath.Join(filepath.Dir(s.socket), "link")
	must.Do(t, os.Symlink(socket, link))
	panes, _ := adopt.List(context.Background(), s.options())
	if len(panes) != 1 || panes[0].Target.Server != "" {
		t.Errorf("the list is %+v", panes)
	}
	target.Server = "link"
	if _, err := adopt.Find(context.Background(), s.options(), target); err == nil {
		t.Error("the pane of another user is found through a link")
	}
}

// TestTwoReadersOfAPane reads one pane twice: both get every byte, as two clients do.
func TestTwoReadersOfAPane(t *testing.T) {
	t.Parallel()
	s := startServer(t, "exec sh")
	one, two := s.adopt("%0"), s.adopt("%0")
	s.same(one, "%0", "the first adoption")
	s.same(two, "%0", "the second adoption")
	s.prints("%0", "seq 3000")
	s.same(one, "%0", "printing")
	s.same(two, "%0", "printing")
	one.kill()
	s.prints("%0", "echo still there")
	s.same(two, "%0", "the first reader's end")
	if got := s.ask("%0", "#{session_attached}"); got != "2" {
		t.Errorf("%s clients, want the two of one reader", got)
	}
}

// TestNestedServers adopts the pane of a server that is shown in a pane of another one,
// and that pane.
func TestNestedServers(t *testing.T) {
	t.Parallel()
	inner, outer := startServer(t, "exec sh"), startServer(t, "exec sh")
	outer.prints("%0", "unset TMUX")
	outer.tmux("send-keys", "-t", "%0", "-l", "tmux -u -S "+inner.socket+" attach")
	outer.tmux("send-keys", "-t", "%0", "-H", "0d")
	testkit.Eventually(t, testkit.Patience, "the inner one is attached", func() bool { return inner.ask("%0", "#{session_attached}") == "1" })
	in, out := inner.adopt("%0"), outer.adopt("%0")
	inner.prints("%0", "clear; seq 30; printf '\\033[31mred\\033[m\\n'")
	inner.same(in, "%0", "printing")
	outer.same(out, "%0", "printing in the inner one")
}

// TestManyPanes adopts many panes of one session at once, 199 of 200 in a soak. Together
// they are two clients, and what one asks tmux does not depend on how many there are.
func TestManyPanes(t *testing.T) {
	t.Parallel()
	panes := 21
	if testkit.Soaking() {
		panes = 200
	}
	s := startServer(t, "exec cat")
	var windows []string
	for n := 1; n < panes; n++ {
		windows = append(windows, "new-window", "-d", fmt.Sprintf("echo pane %d; exec cat", n), ";")
	}
	s.tmux(windows...)
	list, faults := adopt.List(context.Background(), s.options())
	if len(list) != panes || len(faults) > 0 {
		t.Fatalf("%d panes, %v", len(list), faults)
	}
	before := s.commands()
	own := s.commands() - before // of the question itself
	began := time.Now()
	var readers []*terminal
	for _, p := range list[1:] {
		readers = append(readers, startReader(t, p, false))
	}
	for n, r := range readers {
		r.await(0, fmt.Sprint("pane ", n+1))
	}
	t.Logf("%d adopted in %v", len(readers), time.Since(began))
	asked := func(what string, most int) {
		t.Helper()
		var now int
		testkit.Eventually(t, testkit.Patience, "tmux is asked nothing more", func() bool {
			last := now
			now = s.commands()
			return now-last <= own
		})
		t.Logf("%s: %d commands of tmux", what, now-before)
		if now-before > most {
			t.Errorf("%s: tmux has executed %d commands, want at most %d", what, now-before, most)
		}
		before = now
	}
	// For each pane: a listing, the picture and a look, with a token around each command.
	asked("adopting", 60*len(readers)+100)
	if clients := strings.Fields(s.tmux("list-clients", "-F", "#{client_name}")); len(clients) != 2 {
		t.Errorf("the clients are %q, want two", clients)
	}
	if testkit.Soaking() {
		s.idles(t)
	}
	for _, r := range readers {
		go r.kill()
	}
	testkit.Eventually(t, testkit.Patience, "no client is left", func() bool { return s.tmux("list-clients") == "" })
}

// commands returns how many commands the server has executed: it numbers them.
func (s *server) commands() int {
	s.t.Helper()
	_, begin, _ := strings.Cut(s.tmux("-C", "display-message", "-p", "x"), "%begin ")
	return must.Get(strconv.Atoi(strings.Fields(begin + " 0 0")[1]))(s.t)
}

// idles logs what the server and the hub cost while nothing happens.
func (s *server) idles(t *testing.T) {
	used := func(pid int) time.Duration {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		f := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		n := 0
		for _, ticks := range f[11:13] {
			k, _ := strconv.Atoi(ticks)
			n += k
		}
		return time.Duration(n) * time.Second / 100
	}
	hub, server := s.hub()[0], must.Get(strconv.Atoi(s.ask("%0", "#{pid}")))(t)
	was := []time.Duration{used(hub), used(server)}
	const idle = 30 * time.Second
	<-time.After(idle)
	t.Logf("in %v without output: hub %v, tmux %v of a processor", idle, used(hub)-was[0], used(server)-was[1])
}
