package ipc

import (
	"net"
	"syscall"
)

// PeerPid is the number of the process that has opened a connection which a Listener accepted, as the kernel noted it then; false if
// it cannot be known. The process may have handed the connection on, or ended.
func PeerPid(conn net.Conn) (int, bool) {
	s, ok := conn.(syscall.Conn)
	if !ok {
		return 0, false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return 0, false
	}
	pid := 0
	if err := raw.Control(func(fd uintptr) { pid = peerPid(fd) }); err != nil {
		return 0, false
	}
	return pid, pid > 0
}
