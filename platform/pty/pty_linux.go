package pty

import (
	"bytes"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	getTermios = unix.TCGETS
	setTermios = unix.TCSETS
)

// ignoredSignals lists the signals that this process ignores, see proc_pid_status(5), SigIgn. Real-time signals and those reserved by the C
// library (32 and up) are left out: shells do not reset them either.
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

// TryRead reads available output, perhaps none, and does not wait for more. It leaves the end of output to Read. It must not be called
// concurrently with Read or WaitReadable.
func (p *PTY) TryRead(b []byte) int {
	r := &p.reader
	if r.ahead != nil || r.ended || len(b) == 0 {
		return 0
	}
	n := 0
	try := func(fd uintptr) bool {
		n, _ = readNow(fd, b) // an error comes again
		return true
	}
	if r.conn.Read(try) != nil {
		return 0
	}
	return n
}

// readNow is read(2) on a non-blocking descriptor, repeated when a signal interrupted it. b must not be empty. The call bypasses Go's
// scheduler: in a flood most reads wait 10 to 40 µs for the kernel's worker that moves output through the terminal. The scheduler would take
// the processor from the goroutine each time and give it back, which costs a holder a seventh of its CPU time.
func readNow(fd uintptr, b []byte) (int, error) {
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)))
		switch errno {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, errno
		}
	}
}
