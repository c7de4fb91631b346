//go:build linux || darwin

package ipc_test

import (
	"bufio"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
)

const nobody = 65534

// wantPrivate fails the test unless only this user can reach the socket.
func wantPrivate(t *testing.T, path string) {
	t.Helper()
	for name, want := range map[string]fs.FileMode{path: fs.ModeSocket | 0o600, filepath.Dir(path): fs.ModeDir | 0o700, path + ".lock": 0o600} {
		if info, err := os.Lstat(name); err != nil || info.Mode() != want {
			t.Errorf("%s: mode %v, %v; want %v", name, info.Mode(), err, want)
		}
	}
}

func TestNeverRemovesAServedSocket(t *testing.T) {
	testkit.Leaks(t)
	home := testkit.Home(t)
	foreign := filepath.Join(home, "foreign.sock")
	l := must.Get(net.Listen("unix", foreign))(t) // knows nothing of our lock
	defer l.Close()
	file := filepath.Join(home, "file")
	must.Do(t, os.WriteFile(file, []byte("precious"), 0o600))
	for _, path := range []string{foreign, file, home} {
		if l, err := ipc.Listen(path); err == nil {
			l.Close()
			t.Errorf("took the place of %s", path)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s was removed", path)
		}
	}
}

func TestPlacesThatAreRefused(t *testing.T) {
	testkit.Leaks(t)
	home := testkit.Home(t)
	open, link := filepath.Join(home, "open"), filepath.Join(home, "link")
	must.Do(t, errors.Join(os.Mkdir(open, 0o755), os.Symlink(t.TempDir(), link)))
	for _, c := range []struct{ path, says string }{
		{filepath.Join(open, "s"), "chmod 700 " + open},
		{filepath.Join(link, "s"), "not a directory"},
		{"relative/s", "not absolute"},
		{filepath.Join(home, strings.Repeat("x", 100)), "bytes, this system allows"},
		{filepath.Join(os.DevNull, "s"), "not a directory"},
	} {
		l, err := ipc.Listen(c.path)
		if err == nil {
			l.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("Listen(%q): %v, want %q", c.path, err, c.says)
		}
	}
	if _, err := ipc.Dial(t.Context(), filepath.Join(home, strings.Repeat("x", 100))); err == nil || errors.Is(err, ipc.ErrNotRunning) {
		t.Errorf("Dial with a path that is too long: %v", err)
	}
}

// The last line: even if someone opened the directory and the socket, another user's
// program is not served.
func TestOtherUsersAreRefused(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can act as another user")
	}
	testkit.Leaks(t)
	home := testkit.Home(t)
	path := filepath.Join(home, "d.sock")
	l := listen(t, path)
	must.Do(t, errors.Join(os.Chmod(home, 0o755), os.Chmod(path, 0o666)))
	served := make(chan net.Conn, 1)
	go func() {
		conn, _ := l.Accept() // must return for the friend, not for the stranger before
		served <- conn
	}()
	stranger := helper("dial", path)
	stranger.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	stranger.Args[0], stranger.Path = "dial", copyForAll(t, home)
	out, err := stranger.CombinedOutput()
	if string(out) != "EOF\n" || err != nil {
		t.Errorf("another user's connection: %q, %v; want EOF", out, err)
	}
	if n := l.Refused(); n != 1 {
		t.Errorf("%d refused, want 1", n)
	}
	friend := must.Get(ipc.Dial(t.Context(), path))(t)
	defer friend.Close()
	if conn := <-served; conn == nil {
		t.Error("the user's own program was not served")
	} else {
		conn.Close()
	}
}

// copyForAll puts the test binary where another user may run it.
func copyForAll(t *testing.T, dir string) string {
	t.Helper()
	data := must.Get(os.ReadFile(os.Args[0]))(t)
	path := filepath.Join(dir, "helper")
	must.Do(t, os.WriteFile(path, data, 0o755))
	return path
}

func TestDialRefusesAnotherUsersServer(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can act as another user")
	}
	testkit.Leaks(t)
	home := testkit.Home(t)
	must.Do(t, os.Chmod(home, 0o777))
	path := filepath.Join(home, "theirs", "d.sock")
	cmd := helper("listen", path)
	cmd.Path = copyForAll(t, home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "<nil>\n" {
		t.Fatal(line)
	}
	if conn, err := ipc.Dial(t.Context(), path); err == nil || !strings.Contains(err.Error(), "is user 65534") {
		t.Errorf("Dial: %v, %v; want a complaint about the user", conn, err)
	}
}
