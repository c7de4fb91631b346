//go:build linux && !amd64

package proc

// Calls that newer machines do not have; where an older one has them, what waits in them is not seen.
const (
	sysPoll      = -2
	sysSelect    = -3
	sysEpollWait = -4
)
