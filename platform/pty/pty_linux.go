package pty

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"tether/platform/rawio"
)

// MaxLine is how many bytes a terminal in line mode keeps of a line before its end. It
// drops the rest (N_TTY_BUF_SIZE of the kernel's n_tty.c).
const MaxLine = 4095

const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)

// ignoredSignals lists the signals that this process ignores, see proc_pid_status(5),
// SigIgn. Real-time signals and those reserved by the C library (32 and up) are left out:
// shells do not reset them either.
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

// TryRead reads available output, perhaps none, and does not wait for more. It leaves the
// end of output to Read. It must not be called concurrently with Read or WaitReadable.
func (p *PTY) TryRead(b []byte) int {
	r := &p.reader
	if r.ahead != nil || r.ended || len(b) == 0 {
		return 0
	}
	n := 0
	try := func(fd uintptr) bool {
		n, _ = rawio.Read(fd, b) // an error comes again
		return true
	}
	if r.conn.Read(try) != nil {
		return 0
	}
	return n
}
