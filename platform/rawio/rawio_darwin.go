package rawio

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Read is read(2), repeated when a signal interrupted it; at the end of the input it
// returns 0 and no error.
func Read(fd uintptr, p []byte) (int, error) { return repeat(unix.Read, fd, p) }

// Write is write(2), repeated when a signal interrupted it.
func Write(fd uintptr, p []byte) (int, error) { return repeat(unix.Write, fd, p) }

func repeat(call func(int, []byte) (int, error), fd uintptr, p []byte) (int, error) {
	for {
		n, err := call(int(fd), p)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}
