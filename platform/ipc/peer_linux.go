package ipc

import "golang.org/x/sys/unix"

// peerPid returns 0 if it is not known.
func peerPid(fd uintptr) int {
	cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0
	}
	return int(cred.Pid)
}
