//go:build linux && !amd64

package proc

// System calls that newer machines do not have; on an older one that has them, a thread
// that waits in them is not seen.
const (
	sysPoll      = -2
	sysSelect    = -3
	sysEpollWait = -4
)
