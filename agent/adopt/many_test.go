package adopt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// TestManyPanes lists 200 panes, and adopts some of them at once.
func TestManyPanes(t *testing.T) {
	t.Parallel()
	const panes = 200
	adopted := 6
	if testkit.Soaking() {
		adopted = panes
	}
	s := startServer(t, "exec cat")
	var windows []string
	for n := 1; n < panes; n++ {
		windows = append(windows, "new-window", "-d", fmt.Sprintf("echo pane %d; exec cat", n), ";")
	}
	s.tmux(windows...)
	began := time.Now()
	list, faults := adopt.List(context.Background(), s.options())
	if len(list) != panes || len(faults) > 0 {
		t.Fatalf("%d panes, %v", len(list), faults)
	}
	t.Logf("listed in %v", time.Since(began))
	began = time.Now()
	var readers []*terminal
	for n := 1; n <= min(adopted, panes-1); n++ {
		readers = append(readers, startReader(t, list[n], false))
	}
	for n, r := range readers {
		r.await(0, fmt.Sprint("pane ", n+1))
	}
	t.Logf("%d adopted in %v", len(readers), time.Since(began))
	if testkit.Soaking() {
		memory := func(pid string) int {
			text, _ := os.ReadFile("/proc/" + pid + "/smaps_rollup")
			kb := 0
			for line := range strings.Lines(string(text)) {
				if strings.HasPrefix(line, "Pss:") {
					_, _ = fmt.Sscanf(line, "Pss: %d", &kb)
				}
			}
			return kb
		}
		all := 0
		for _, r := range readers {
			for _, pid := range r.tree() {
				all += memory(fmt.Sprint(pid))
			}
		}
		t.Logf("%d kB for each reader with its clients, %d kB for the server", all/len(readers), memory(s.ask("%0", "#{pid}")))
		began = time.Now()
		s.tmux("respawn-pane", "-k", "-t", "%199", "seq 2000000; echo FLOOD-END; exec cat")
		testkit.Eventually(t, testkit.Patience, "the flood ends", func() bool { return strings.Contains(s.tmux("capture-pane", "-p", "-t", "%199"), "FLOOD-END") })
		t.Logf("a flood of 14 MB in a pane beside them takes %v", time.Since(began))
	}
	for _, r := range readers {
		r.kill()
	}
	testkit.Eventually(t, testkit.Patience, "no client is left", func() bool { return s.tmux("list-clients") == "" })
}
