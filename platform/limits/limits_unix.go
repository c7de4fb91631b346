//go:build linux || darwin

package limits

import (
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns a shell that sets its own limit and then becomes the command.
func cpuTime(limit time.Duration, argv []string) ([]string, error) {
	return append([]string{"/bin/sh", "-c", `ulimit -t "$0" && exec "$@"`, seconds(limit)}, argv...), nil
}

func free(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}

func files() (uint64, error) {
	var r unix.Rlimit
	err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r)
	return r.Cur, err
}

// seconds returns the limit in whole seconds, rounded up, at least one.
func seconds(limit time.Duration) string {
	return strconv.FormatInt(max(1, int64((limit+time.Second-1)/time.Second)), 10)
}
