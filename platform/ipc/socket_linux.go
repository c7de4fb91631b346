package ipc

import "golang.org/x/sys/unix"

// MaxPath is the longest socket path in bytes: sun_path without its final NUL, see
// unix(7).
const MaxPath = 107

func peerUID(fd int) (int, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
