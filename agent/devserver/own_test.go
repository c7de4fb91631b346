//go:build linux

package devserver_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tether/agent/devserver"
	"tether/agent/term"
	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/proc"
)

const (
	patience = 30 * time.Second
	beVar    = "BE_A_SERVER_IN"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(beVar); dir != "" {
		beServer(dir)
	}
	os.Exit(m.Run())
}

// beServer listens, hands the socket to a program outside of all terminals, and closes
// its own when there is a file.
func beServer(dir string) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	socket, _ := l.(*net.TCPListener).File()
	heir := exec.Command("sleep", "60")
	heir.Env, heir.ExtraFiles, heir.SysProcAttr = proc.WithoutTag(os.Environ()), []*os.File{socket}, &syscall.SysProcAttr{Setsid: true}
	if err := heir.Start(); err != nil {
		panic(err)
	}
	_ = os.WriteFile(filepath.Join(dir, "new"), fmt.Appendf(nil, "%d %d", l.Addr().(*net.TCPAddr).Port, heir.Process.Pid), 0o600)
	_ = os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "is"))
	testkit.AwaitFile(filepath.Join(dir, "close"))
	_ = l.Close()
	_ = socket.Close()
	testkit.AwaitFile(filepath.Join(dir, "end"))
	os.Exit(0)
}

// A socket that a program outside of the terminal has open, too, is the terminal's until
// its own programs have closed it. Then nobody gets to that program through the terminal,
// nor to another one that listens on the port later.
func TestAPortChangesHands(t *testing.T) {
	pool := term.NewPool(term.Options{})
	t.Cleanup(func() { check.OK(t, pool.Close(context.Background())) })
	dir := t.TempDir()
	h := must.Get(pool.As(term.User).Spawn(term.Spec{Cwd: dir, Env: append(proc.WithoutTag(os.Environ()), beVar+"="+dir), Command: []string{must.Get(os.Executable())(t)}}))(t)
	var port, heir int
	testkit.Eventually(t, patience, "a server", func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "is"))
		n, _ := fmt.Sscan(string(text), &port, &heir)
		return n == 2
	})
	s := devserver.Of(h)
	kind := func() devserver.Kind {
		conn, err := s.Dial(t.Context(), port)
		if err == nil {
			conn.Close()
			return -1
		}
		if e, is := errors.AsType[*devserver.Error](err); is && strings.Contains(e.Error(), fmt.Sprint(port)) {
			return e.Kind
		}
		t.Fatal(err)
		return 0
	}
	if only, err := s.Only(); only != port || err != nil || kind() != -1 {
		t.Errorf("the terminal's own port is %d, %v", only, err)
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "close"), nil, 0o600))
	testkit.Eventually(t, patience, "the other program's port is refused", func() bool { return kind() == devserver.Foreign })
	must.Do(t, syscall.Kill(heir, syscall.SIGKILL))
	testkit.Eventually(t, patience, "nothing listens", func() bool { return kind() == devserver.None })
	l := must.Get(net.Listen("tcp4", fmt.Sprint("127.0.0.1:", port)))(t)
	defer l.Close()
	if k := kind(); k != devserver.Foreign {
		t.Errorf("a third program: %d", k)
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "end"), nil, 0o600))
}
