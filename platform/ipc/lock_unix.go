//go:build linux || darwin

package ipc

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Held is a lock held by this process until Close, or until the process ends in any way.
// The file stays: removing it would let two processes lock two files of one name.
type Held struct {
	file *os.File
}

// Lock takes the lock at path, creating the file if needed, and writes this process's
// number into it. It does not wait: if another process holds the lock, or this one does
// already, it returns a *LockedError.
func Lock(path string) (*Held, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if err := flock(f, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &LockedError{Path: path, Pid: readPid(f)}
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if err := writePid(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("write lock: %w", err)
	}
	return &Held{f}, nil
}

// Close gives the lock up.
func (h *Held) Close() error {
	// Closing alone is not enough at once: a program that is being started has a copy of
	// the descriptor until it calls execve.
	return errors.Join(flock(h.file, unix.LOCK_UN), h.file.Close())
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
