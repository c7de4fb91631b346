package volume

import (
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const flags = unix.O_NOFOLLOW | unix.O_NONBLOCK

// mounts returns the mount points of this process, see proc_pid_mountinfo(5).
func mounts() []string {
	text, _ := os.ReadFile("/proc/self/mountinfo") // without it, everything is one file system
	var all []string
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			all = append(all, unescape(fields[4]))
		}
	}
	return all
}

// unescape resolves the octal escapes of blanks and backslashes.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// Changed returns when a file's content or attributes were last changed; ok is false if
// the system does not tell.
func Changed(info os.FileInfo) (at time.Time, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return at, false
	}
	return time.Unix(stat.Ctim.Unix()), true
}
