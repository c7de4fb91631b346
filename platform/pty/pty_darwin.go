package pty

import (
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
