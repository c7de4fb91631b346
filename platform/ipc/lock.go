//go:build linux || darwin || windows

package ipc

import (
	"bytes"
	"errors"
	"os"
	"strconv"
)

// writePid writes the holder's process number into the file of a lock.
func writePid(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// readPid reads that, 0 if it is not there yet.
func readPid(f *os.File) int {
	var buf [32]byte
	n, _ := f.ReadAt(buf[:], 0) // at the end of the file with io.EOF
	pid, err := strconv.Atoi(string(bytes.TrimSpace(buf[:n])))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}

// Holder returns the process that holds the lock at path, as it says itself; 0 if nobody
// does or it has not said so yet.
func Holder(path string) int {
	lock, err := Lock(path)
	if locked, ok := errors.AsType[*LockedError](err); ok {
		return locked.Pid
	}
	if err == nil {
		_ = lock.Close() // it goes with the process in any case
	}
	return 0
}

// InPlace reports whether the file at path is the one that is locked: that it was neither
// removed nor replaced.
func (h *Held) InPlace(path string) bool {
	locked, err := h.file.Stat()
	there, missing := os.Stat(path)
	return err == nil && missing == nil && os.SameFile(locked, there)
}
