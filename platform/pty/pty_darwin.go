package pty

import (
	"errors"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)

// ignoredSignals lists the ignored signals that the Go runtime knows: those ignored by nohup.
func ignoredSignals() []os.Signal {
	var ignored []os.Signal
	for s := unix.Signal(1); s < 32; s++ {
		if signal.Ignored(s) {
			ignored = append(ignored, s)
		}
	}
	return ignored
}

// readNow is read(2) on a non-blocking descriptor, repeated when a signal interrupted it. b must not be empty.
func readNow(fd uintptr, b []byte) (int, error) {
	for {
		n, err := unix.Read(int(fd), b)
		if !errors.Is(err, unix.EINTR) {
			return max(n, 0), err
		}
	}
}
