package rawio_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/platform/rawio"
)

// A read of a descriptor that has become blocking does not block: the deadline still ends
// it.
func TestBlockingSocket(t *testing.T) {
	a, _ := pair(t, "unix")
	raw, err := a.(interface{ NetConn() net.Conn }).NetConn().(*net.UnixConn).SyscallConn()
	must.Do(t, err)
	must.Do(t, raw.Control(func(fd uintptr) { err = unix.SetNonblock(int(fd), false) }))
	must.Do(t, err)
	must.Do(t, a.SetReadDeadline(time.Now().Add(10*time.Millisecond)))
	if _, err := a.Read(make([]byte, 1)); !os.IsTimeout(err) {
		t.Errorf("read: %v", err)
	}
}

// A loop of calls that never wait lets other goroutines run, even on the only processor
// and in a process that was idle before: the monitor thread is awake.
func TestOthersRun(t *testing.T) {
	const inChild = "RAWIO_TEST_OTHERS"
	if os.Getenv(inChild) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestOthersRun$")
		cmd.Env = append(os.Environ(), inChild+"=1")
		in := must.Get(cmd.StdinPipe())(t)
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &out
		must.Do(t, cmd.Start())
		last, since := "", time.Now()
		testkit.Eventually(t, testkit.Patience, "the child is idle", func() bool {
			if now := switches(t, cmd.Process.Pid); now != last {
				last, since = now, time.Now()
			}
			return time.Since(since) > 100*time.Millisecond
		})
		must.Get(in.Write([]byte("x")))(t)
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %s", err, &out)
		}
		return
	}
	runtime.GOMAXPROCS(1)
	zero := must.Get(os.Open("/dev/zero"))(t)
	stdin := os.NewFile(dupNonblocking(t), "stdin")
	r, w, err := os.Pipe()
	must.Do(t, err)
	var came atomic.Bool
	go func() {
		if n, _ := r.Read(make([]byte, 1)); n == 1 {
			came.Store(true)
		}
	}()
	in := must.Get(stdin.SyscallConn())(t)
	endless, other, buf := zero.Fd(), w.Fd(), make([]byte, 4<<10)
	if err := in.Read(func(fd uintptr) bool { // an ordinary read would wake the monitor
		_, err := rawio.ReadUnnoted(fd, buf)
		return err != unix.EAGAIN
	}); err != nil {
		t.Fatal(err)
	}
	must.Get(rawio.WriteUnnoted(other, []byte("x")))(t)
	for began := time.Now(); !came.Load(); {
		must.Get(rawio.ReadUnnoted(endless, buf))(t)
		if time.Since(began) > 5*time.Second {
			t.Fatal("the other goroutine has not run in 5 s")
		}
	}
}

// switches returns the counts of voluntary context switches of the threads of a process,
// as text.
func switches(t *testing.T, pid int) (all string) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(threads) == 0 {
		t.Fatal("no threads:", err)
	}
	for _, name := range threads {
		status, _ := os.ReadFile(name) // the thread may have ended
		_, line, _ := strings.Cut(string(status), "\nvoluntary_ctxt_switches:")
		line, _, _ = strings.Cut(line, "\n")
		all += line
	}
	return all
}

// dupNonblocking returns a copy of the standard input, which Go's poller watches.
func dupNonblocking(t *testing.T) uintptr {
	t.Helper()
	fd, err := unix.Dup(0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	must.Do(t, err)
	return uintptr(fd)
}
