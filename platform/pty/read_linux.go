package pty

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// readNow is read(2) on a non-blocking descriptor, repeated when a signal interrupted it. b must not be empty. The call bypasses Go's
// scheduler: in a flood most reads wait 10 to 40 µs for the kernel's worker that moves output through the terminal. The scheduler would take
// the processor from the goroutine each time and give it back, which costs a holder a seventh of its CPU time.
func readNow(fd uintptr, b []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}
