package proc

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// resources are the kernel's limits (getrlimit(2)).
var resources = map[string]int{
	"as": unix.RLIMIT_AS, "core": unix.RLIMIT_CORE, "cpu": unix.RLIMIT_CPU, "data": unix.RLIMIT_DATA, "fsize": unix.RLIMIT_FSIZE,
	"locks": unix.RLIMIT_LOCKS, "memlock": unix.RLIMIT_MEMLOCK, "msgqueue": unix.RLIMIT_MSGQUEUE, "nice": unix.RLIMIT_NICE,
	openFiles: unix.RLIMIT_NOFILE, "nproc": unix.RLIMIT_NPROC, "rss": unix.RLIMIT_RSS, "rtprio": unix.RLIMIT_RTPRIO,
	"rttime": unix.RLIMIT_RTTIME, "sigpending": unix.RLIMIT_SIGPENDING, "stack": unix.RLIMIT_STACK,
}

// Umask returns this process's umask.
func Umask() int {
	status, err := os.ReadFile("/proc/self/status")
	if err == nil {
		_, line, _ := bytes.Cut(status, []byte("\nUmask:"))
		line, _, _ = bytes.Cut(line, []byte("\n"))
		if mask, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 8, 9); err == nil {
			return int(mask)
		}
	}
	mask := unix.Umask(0o077) // Linux before 4.7
	unix.Umask(mask)
	return mask
}

// niceValue returns the nice value. The system call returns 20 minus it, so that it is no
// error's number.
func niceValue() (int, error) {
	const biased = 20
	n, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	return biased - n, err
}

// selfPath names this program also when its file was replaced: /proc/self is resolved in
// the child, which still runs it.
func selfPath() (string, error) { return "/proc/self/exe", nil }
