package pty

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// MaxLine is how many bytes a terminal in line mode keeps of a line before its end. It
// drops the rest (TTYHOG of XNU's tty.h).
const MaxLine = 1023

const (
	getTermios = unix.TIOCGETA
	setTermios = unix.TIOCSETA
)

// ignoredSignals lists the ignored signals that the Go runtime knows: those ignored by
// nohup.
func ignoredSignals() []os.Signal {
	var ignored []os.Signal
	for s := unix.Signal(1); s < 32; s++ {
		if signal.Ignored(s) {
			ignored = append(ignored, s)
		}
	}
	return ignored
}
