//go:build linux || darwin

package tty

import (
	"os"

	"golang.org/x/sys/unix"
)

// Person opens this process's controlling terminal, wherever its standard files lead, to
// ask a person. ok is false if there is none, or if this process is not in its
// foreground: it would be stopped when it reads. The caller closes it.
func Person() (in, out *os.File, ok bool) {
	f, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, nil, false
	}
	if front, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGPGRP); err != nil || front != unix.Getpgrp() {
		f.Close()
		return nil, nil, false
	}
	return f, f, true
}
