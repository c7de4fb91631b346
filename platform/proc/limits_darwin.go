package proc

import (
	"os"

	"golang.org/x/sys/unix"
)

// resources are the kernel's limits (getrlimit(2)). RLIMIT_RSS is another name of
// RLIMIT_AS.
var resources = map[string]int{
	"as": unix.RLIMIT_AS, "core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "data": unix.RLIMIT_DATA, "fsize": unix.RLIMIT_FSIZE,
	"memlock": unix.RLIMIT_MEMLOCK, openFiles: unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC, "stack": unix.RLIMIT_STACK,
}

// Umask returns this process's umask. The system only tells the old one when it sets
// another.
func Umask() int {
	mask := unix.Umask(0o077)
	unix.Umask(mask)
	return mask
}

func niceValue() (int, error) { return unix.Getpriority(unix.PRIO_PROCESS, 0) }

func selfPath() (string, error) { return os.Executable() }
