package ipc

import (
	"errors"

	"golang.org/x/sys/unix"
)

// peerOf takes a pidfd, which Linux has for a peer since 6.5, besides its number. ESRCH
// means that the process has ended.
func peerOf(fd uintptr) (Peer, error) {
	cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Peer{}, err
	}
	p := Peer{Pid: int(cred.Pid), handle: -1}
	handle, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	switch {
	case err == nil:
		p.handle = handle
		unix.CloseOnExec(handle) // the kernel has set it, see pidfd_prepare
	case errors.Is(err, unix.ESRCH), errors.Is(err, unix.ENODATA):
		return Peer{}, unix.ESRCH
	}
	return p, nil
}

// gone asks the pidfd, which can be read from when the process has ended.
func (p Peer) gone() bool {
	if p.handle < 0 {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(p.handle), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}

func (p Peer) close() {
	if p.handle >= 0 {
		unix.Close(p.handle)
	}
}
