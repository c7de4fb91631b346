package ipc_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tether/internal/testkit"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/platform/ipc"
)

const (
	helperVar = "IPC_TEST_HELPER" // selects another job of the test binary instead of the tests
	pathVar   = "IPC_TEST_PATH"
)

func TestMain(m *testing.M) {
	path := os.Getenv(pathVar)
	switch os.Getenv(helperVar) {
	case "listen": // until killed
		l, err := ipc.Listen(path)
		fmt.Println(err)
		if err == nil {
			_, _ = l.Accept()
		}
	case "dial":
		conn, err := net.Dial("unix", path)
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = conn.Read(make([]byte, 1))
		fmt.Println(err)
	default:
		os.Exit(m.Run())
	}
}

// helper is the test binary in another role.
func helper(role, path string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), helperVar+"="+role, pathVar+"="+path, "GORACE=atexit_sleep_ms=0")
	return cmd
}

func listen(t *testing.T, path string) *ipc.Listener {
	t.Helper()
	l := must.Get(ipc.Listen(path))(t)
	t.Cleanup(func() { l.Close() })
	return l
}

func TestConversation(t *testing.T) {
	testkit.Leaks(t)
	path := filepath.Join(testkit.Home(t), "run", "d.sock")
	l := listen(t, path)
	wantPrivate(t, path)
	var wg sync.WaitGroup
	wg.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.Copy(conn, conn)
	})
	conn := must.Get(ipc.Dial(t.Context(), path))(t)
	fmt.Fprintln(conn, "hello")
	if line, err := bufio.NewReader(conn).ReadString('\n'); line != "hello\n" || err != nil {
		t.Errorf("came back as %q, %v", line, err)
	}
	conn.Close()
	wg.Wait()
	if n := l.Refused(); n != 0 {
		t.Errorf("%d refused", n)
	}
}

func TestNobodyThere(t *testing.T) {
	testkit.Leaks(t)
	path := filepath.Join(testkit.Home(t), "run", "d.sock")
	if conn, err := ipc.Dial(t.Context(), path); !errors.Is(err, ipc.ErrNotRunning) || !strings.Contains(err.Error(), path) {
		t.Errorf("no directory: %v, %v", conn, err)
	}
	l := listen(t, path)
	var wg sync.WaitGroup
	wg.Go(func() {
		if conn, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept while closed: %v, %v", conn, err)
		}
	})
	for range 2 { // the second time does nothing
		check.OK(t, l.Close())
	}
	wg.Wait()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left: %v", err)
	}
	if conn, err := ipc.Dial(t.Context(), path); !errors.Is(err, ipc.ErrNotRunning) {
		t.Errorf("closed: %v, %v", conn, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	listen(t, path)
	if conn, err := ipc.Dial(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v, %v", conn, err)
	}
}

func TestOnlyOneListens(t *testing.T) {
	testkit.Leaks(t)
	path := filepath.Join(testkit.Home(t), "d.sock")
	first := listen(t, path)
	var locked *ipc.LockedError
	if _, err := ipc.Listen(path); !errors.As(err, &locked) || locked.Pid != os.Getpid() || locked.Path != path+".lock" {
		t.Errorf("second in this process: %v, want LockedError with pid %d", err, os.Getpid())
	}
	out, err := helper("listen", path).CombinedOutput()
	if want := fmt.Sprintf("%s.lock is locked by process %d\n", path, os.Getpid()); err != nil || string(out) != want {
		t.Errorf("second in another process: %q, %v; want %q", out, err, want)
	}
	if conn, err := ipc.Dial(t.Context(), path); err != nil {
		t.Errorf("the first one's socket does not answer any more: %v", err)
	} else {
		conn.Close()
	}
	first.Close()
	listen(t, path)
}

// After kill -9 the socket is still there, but nobody answers; the next one takes its
// place.
func TestStaleSocketIsReplaced(t *testing.T) {
	testkit.Leaks(t)
	path := filepath.Join(testkit.Home(t), "d.sock")
	for range 5 {
		cmd := helper("listen", path)
		out := must.Get(cmd.StdoutPipe())(t)
		must.Do(t, cmd.Start())
		if line, _ := bufio.NewReader(out).ReadString('\n'); line != "<nil>\n" {
			t.Fatalf("Listen after a killed process: %s", line)
		}
		cmd.Process.Kill()
		cmd.Wait()
		if _, err := os.Lstat(path); err != nil {
			t.Fatalf("this test needs a stale socket: %v", err)
		}
	}
	listen(t, path)
}

// Many start at once: exactly one wins, and its socket works.
func TestRace(t *testing.T) {
	testkit.Leaks(t)
	path := filepath.Join(testkit.Home(t), "d.sock")
	for range 125 { // of 8 each: a thousand
		won := make(chan *ipc.Listener, 8)
		var wg sync.WaitGroup
		for range cap(won) {
			wg.Go(func() {
				l, err := ipc.Listen(path)
				if err == nil {
					won <- l
				} else if locked := (*ipc.LockedError)(nil); !errors.As(err, &locked) {
					t.Errorf("lost with %v", err)
				}
			})
		}
		wg.Wait()
		if len(won) != 1 {
			t.Fatalf("%d listen at one path", len(won))
		}
		conn := must.Get(ipc.Dial(t.Context(), path))(t)
		conn.Close()
		(<-won).Close()
	}
}

func TestLock(t *testing.T) {
	testkit.Leaks(t)
	path := filepath.Join(t.TempDir(), "lock")
	must.Do(t, os.WriteFile(path, []byte("999999 and more than a number"), 0o600))
	held := must.Get(ipc.Lock(path))(t)
	var locked *ipc.LockedError
	if _, err := ipc.Lock(path); !errors.As(err, &locked) || locked.Pid != os.Getpid() {
		t.Errorf("locked twice: %v", err)
	}
	must.Do(t, os.WriteFile(path, []byte("no number"), 0o600))
	if _, err := ipc.Lock(path); !errors.As(err, &locked) || locked.Pid != 0 || !strings.Contains(err.Error(), "another process") {
		t.Errorf("held by somebody unknown: %v", err)
	}
	check.OK(t, held.Close())
	again := must.Get(ipc.Lock(path))(t)
	again.Close()
	if _, err := ipc.Lock(filepath.Join(path, "below a file")); err == nil || errors.As(err, &locked) && locked.Path != path {
		t.Errorf("lock below a file: %v", err)
	}
}
