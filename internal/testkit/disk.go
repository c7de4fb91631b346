package testkit

import (
	"os"
	"os/exec"
	"testing"
)

// diskVar tells the process with the small file system where it is mounted.
const diskVar = "TETHER_TEST_DISK"

// OnSmallDisk runs the test a second time, in a process with a file system of 1 MiB
// mounted at disk. There it returns true, and the test goes on. In the first process it
// waits for that run, fails the test if the run failed, and returns false: the test then
// returns. It skips the test where nothing can be mounted.
func OnSmallDisk(t testing.TB) (disk string, there bool) {
	t.Helper()
	if disk := os.Getenv(diskVar); disk != "" {
		return disk, true
	}
	disk = Home(t)
	how := "-rm" // a user namespace, in which a plain user may mount
	if os.Geteuid() == 0 {
		how = "-m"
	}
	if out, err := exec.CommandContext(t.Context(), "unshare", how, "mount", "-t", "tmpfs", "none", disk).CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted for it: %v: %s", err, out)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", how, "sh", "-c", `mount -t tmpfs -o size=1m,mode=700 none "$1" && exec "$0" -test.run="^$2\$"`,
		os.Args[0], disk, t.Name())
	cmd.Env = append(os.Environ(), diskVar+"="+disk)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return "", false
}

// Remount mounts the file system of OnSmallDisk read-only ("ro") or writable ("rw").
func Remount(t testing.TB, disk, how string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "mount", "-o", "remount,"+how, disk).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
