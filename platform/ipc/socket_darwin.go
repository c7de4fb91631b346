package ipc

import "golang.org/x/sys/unix"

// MaxPath is the longest socket path in bytes: sun_path without its final NUL, see
// <sys/un.h>.
const MaxPath = 103

func peerUID(fd int) (int, error) {
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(cred.Uid), nil
}
