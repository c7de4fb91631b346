package adopt_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"tether/agent/adopt"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

const verb = "adopt-reader"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == verb {
		os.Exit(adopt.Main(os.Args[2:]))
	}
	if code, is := commandOf(os.Args); is {
		os.Exit(code)
	}
	os.Exit(testkit.Main(m))
}

// tmux is a server of the test's own.
type tmux struct {
	t      *testing.T
	dir    string
	socket string
}

func newTmux(t *testing.T, command string) *tmux {
	t.Helper()
	testkit.Unix(t, testkit.Programs)
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("there is no tmux")
	}
	dir := must.Get(os.MkdirTemp("", "adopt"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := &tmux{t, dir, filepath.Join(dir, "s")}
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", m.socket, "kill-server").Run() })
	m.run("-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", command)
	return m
}

func (m *tmux) run(args ...string) string {
	m.t.Helper()
	cmd := exec.Command("tmux", append([]string{"-u", "-S", m.socket}, args...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		m.t.Fatalf("tmux %q: %v: %s", args, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func (m *tmux) find(pane string) adopt.Pane {
	m.t.Helper()
	return must.Get(adopt.Find(context.Background(), adopt.Options{}, adopt.Target{Program: "tmux", Server: m.socket, Pane: pane}))(m.t)
}

// sink keeps what a reader writes, until limit bytes; then it fails.
type sink struct {
	mu    sync.Mutex
	b     bytes.Buffer
	ended bool
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return 0, errors.New("enough")
	}
	return s.b.Write(p)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestReaderFollowsAPane(t *testing.T) {
	m := newTmux(t, "PS1=\"# \" sh")
	p := m.find("%0")
	s := &sink{}
	done := make(chan int)
	go func() { done <- adopt.Read(p, "N", false, nil, s) }()
	testkit.Eventually(t, testkit.Patience, "prompt", func() bool { return strings.Contains(s.String(), "# ") })
	m.run("send-keys", "-t", "%0", "echo a$((1+1))b; cd /usr; printf '\\303'; sleep .1; printf '\\266\\n'\n")
	testkit.Eventually(t, testkit.Patience, "echo", func() bool { return strings.Contains(s.String(), "ö") })
	testkit.Eventually(t, testkit.Patience, "dir", func() bool { return strings.Contains(s.String(), "Cwd=/usr") })
	if got := regexp.MustCompile("\x1b\\[[0-9;]*H").FindString(s.String()); got != "" { // a move begins another line for readers of lines
		t.Errorf("%q moves the cursor, which is there already", got)
	}
	m.run("split-window", "-h", "yes")
	testkit.Eventually(t, testkit.Patience, "size", func() bool { return strings.Contains(s.String(), "Size=40x24") })
	m.run("send-keys", "-t", "%0", "exit 3\n")
	if status := <-done; status != 0 || !strings.Contains(s.String(), "[the pane has ended]") {
		t.Errorf("status %d after %q", status, s.String())
	}
}
