package ipc

import "golang.org/x/sys/unix"

// peerPid returns 0 if it is not known.
func peerPid(fd uintptr) int {
	pid, err := unix.GetsockoptInt(int(fd), unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	if err != nil {
		return 0
	}
	return pid
}
