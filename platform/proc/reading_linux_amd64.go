package proc

import "golang.org/x/sys/unix"

// Calls that newer machines do not have.
const (
	sysPoll      = unix.SYS_POLL
	sysSelect    = unix.SYS_SELECT
	sysEpollWait = unix.SYS_EPOLL_WAIT
)
