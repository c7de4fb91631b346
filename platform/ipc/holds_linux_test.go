package ipc_test

import (
	"os"
	"path/filepath"
	"testing"

	"tether/platform/ipc"
)

// Who has written its number into the file, or has it open, does not hold the lock.
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
	lock, err := ipc.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	holds(true, "held")
	if got, err := ipc.Holds(os.Getppid(), path); got || err != nil {
		t.Errorf("another process: %v, %v", got, err)
	}
	if _, err := ipc.Holds(1<<30, path); err == nil {
		t.Error("a process that is not there holds it")
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	holds(false, "open")
	other, err := ipc.Lock(filepath.Join(t.TempDir(), "other"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	holds(false, "another one held")
}
