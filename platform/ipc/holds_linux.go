package ipc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Holds reports whether the process holds the lock at path, see Lock, according to the
// kernel. The number in the file would not do: any program of the user can write it.
//
// The kernel shows the locks of a descriptor beside it (proc_pid_fdinfo(5)), so that file
// and lock belong to one open file. /proc/locks names the file by device and inode only,
// and on some file systems (btrfs, overlayfs) the device differs from stat's.
func Holds(pid int, path string) (bool, error) {
	want, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	return holds(pid, want, "WRITE")
}

// Locker returns a process that keeps others from taking the lock at path, also by a
// shared lock, according to the kernel and not to the file. It is 0 if none can be seen,
// such as another user's.
func Locker(path string) (int, error) {
	want, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	all, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	for _, p := range all {
		pid, err := strconv.Atoi(p.Name())
		if err != nil {
			continue // no process
		}
		if yes, err := holds(pid, want, "WRITE", "READ"); err == nil && yes { // otherwise the process has ended or is another user's
			return pid, nil
		}
	}
	return 0, nil
}

// holds reports whether the process has a lock of one of these kinds on the file.
func holds(pid int, want os.FileInfo, kinds ...string) (bool, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	fds, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return false, fmt.Errorf("inspect the open files of process %d: %w", pid, err)
	}
	for _, fd := range fds {
		file, err := os.Stat(filepath.Join(dir, "fd", fd.Name()))
		if err != nil || !os.SameFile(file, want) {
			continue
		}
		info, err := os.ReadFile(filepath.Join(dir, "fdinfo", fd.Name()))
		if err == nil && hasLock(info, kinds) {
			return true, nil
		}
	}
	return false, nil
}

// hasLock tells whether a descriptor's information shows a lock by flock(2) of one of
// these kinds: "lock: 1: FLOCK ADVISORY WRITE 17 fe:00:9 0 EOF".
func hasLock(info []byte, kinds []string) bool {
	for line := range bytes.Lines(info) {
		if f := bytes.Fields(line); len(f) > 4 && string(f[0]) == "lock:" && string(f[2]) == "FLOCK" && slices.Contains(kinds, string(f[4])) {
			return true
		}
	}
	return false
}
