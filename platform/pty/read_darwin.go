package pty

import (
	"errors"

	"golang.org/x/sys/unix"
)

// readNow is read(2) on a non-blocking descriptor, repeated when a signal interrupted it. b must not be empty.
func readNow(fd uintptr, b []byte) (int, error) {
	for {
		n, err := unix.Read(int(fd), b)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}
