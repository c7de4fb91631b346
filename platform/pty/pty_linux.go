package pty

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)

// ignoredSignals lists the signals this process ignores, see proc_pid_status(5), SigIgn. Real-time signals and those the C library
// keeps for itself (32 and up) are left out: shells do not reset them either.
func ignoredSignals() []os.Signal {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil
	}
	_, line, _ := bytes.Cut(status, []byte("\nSigIgn:"))
	line, _, _ = bytes.Cut(line, []byte("\n"))
	mask, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 64)
	if err != nil {
		return nil
	}
	var ignored []os.Signal
	for s := unix.Signal(1); s < 32; s++ {
		if mask&(1<<(s-1)) != 0 {
			ignored = append(ignored, s)
		}
	}
	return ignored
}
