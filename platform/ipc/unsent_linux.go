package ipc

import (
	"net"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Unsent is how many bytes that were written to a TCP socket the other side has not
// acknowledged yet. It is false if the system does not tell. It does not block.
func Unsent(c *net.TCPConn) (n int, ok bool) {
	socket, err := c.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = socket.Control(func(fd uintptr) {
		var queued int32
		_, _, errno := unix.RawSyscall(unix.SYS_IOCTL, fd, unix.SIOCOUTQ, uintptr(unsafe.Pointer(&queued)))
		n, ok = int(queued), errno == 0
	})
	return n, ok && err == nil
}
