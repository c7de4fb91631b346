package ipc_test

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"tether/internal/testkit/must"
	"tether/platform/ipc"
)

// The holder of a lock is found, whatever number is in the file.
func TestLocker(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	if _, err := ipc.Locker(path); err == nil {
		t.Error("a lock that is not there is held")
	}
	must.Do(t, os.WriteFile(path, []byte("1\n"), 0o600))
	f := must.Get(os.OpenFile(path, os.O_RDWR, 0))(t)
	defer f.Close()
	for _, c := range []struct{ how, want int }{{unix.LOCK_EX, os.Getpid()}, {unix.LOCK_SH, os.Getpid()}, {unix.LOCK_UN, 0}} {
		must.Do(t, unix.Flock(int(f.Fd()), c.how))
		if got, err := ipc.Locker(path); got != c.want || err != nil {
			t.Errorf("flock %d: process %d, %v; want %d", c.how, got, err, c.want)
		}
	}
}

// A process that wrote its number into the file, or has it open, does not hold the lock.
func TestHolds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	holds := func(want bool, when string) {
		t.Helper()
		if got, err := ipc.Holds(os.Getpid(), path); got != want || err != nil {
			t.Errorf("%s: %v, %v", when, got, err)
		}
	}
	if _, err := ipc.Holds(os.Getpid(), path); err == nil {
		t.Error("a lock that is not there is held")
	}
	lock := must.Get(ipc.Lock(path))(t)
	holds(true, "held")
	if got, err := ipc.Holds(os.Getppid(), path); got || err != nil {
		t.Errorf("another process: %v, %v", got, err)
	}
	if _, err := ipc.Holds(1<<30, path); err == nil {
		t.Error("a process that is not there holds it")
	}
	must.Do(t, lock.Close())
	f := must.Get(os.OpenFile(path, os.O_RDWR, 0))(t)
	defer f.Close()
	holds(false, "open")
	other := must.Get(ipc.Lock(filepath.Join(t.TempDir(), "other")))(t)
	defer other.Close()
	holds(false, "another one held")
}
