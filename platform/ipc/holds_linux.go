package ipc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// Holds reports whether the process holds the lock at path, see Lock, as the kernel knows it. The number in the file would not do: any
// program of the user can write it.
//
// The kernel shows the locks of a descriptor beside it (proc_pid_fdinfo(5)), so that file and lock are of one open file. /proc/locks
// names the file by device and inode only, and the device is another one than stat's on some file systems (btrfs, overlayfs).
func Holds(pid int, path string) (bool, error) {
	want, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	dir := "/proc/" + strconv.Itoa(pid)
	fds, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return false, fmt.Errorf("look at the files of process %d: %w", pid, err)
	}
	for _, fd := range fds {
		file, err := os.Stat(filepath.Join(dir, "fd", fd.Name()))
		if err != nil || !os.SameFile(file, want) {
			continue
		}
		info, err := os.ReadFile(filepath.Join(dir, "fdinfo", fd.Name()))
		if err == nil && hasLock(info) {
			return true, nil
		}
	}
	return false, nil
}

// hasLock tells whether a descriptor's information shows an exclusive lock by flock(2): "lock: 1: FLOCK ADVISORY WRITE 17 fe:00:9 0 EOF".
func hasLock(info []byte) bool {
	for line := range bytes.Lines(info) {
		if f := bytes.Fields(line); len(f) > 4 && string(f[0]) == "lock:" && string(f[2]) == "FLOCK" && string(f[4]) == "WRITE" {
			return true
		}
	}
	return false
}
