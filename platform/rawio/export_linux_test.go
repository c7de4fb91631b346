package rawio

import "golang.org/x/sys/unix"

// ReadUnnoted and WriteUnnoted are Read and Write without the ordinary system calls for
// the race detector.
func ReadUnnoted(fd uintptr, p []byte) (int, error)  { return transfer(unix.SYS_READ, fd, p, 0) }
func WriteUnnoted(fd uintptr, p []byte) (int, error) { return transfer(unix.SYS_WRITE, fd, p, 0) }
