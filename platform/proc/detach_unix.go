//go:build linux || darwin

package proc

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// StartDetached starts a program that lives on when this process and its terminal are
// gone: in a session of its own, without a terminal, in the root directory (so that it
// keeps no file system busy), with in as its standard input, or reading nothing if in is
// nil, and with all its output appended to logFile, which only the user may read. path is
// absolute; argv is the whole argument list, the program's own name first; env is its
// whole environment, without the mark of a terminal it may have been started from. It
// gets no other descriptors. The caller may Wait, to learn of an early end, or Release.
func StartDetached(path string, argv, env []string, logFile string, in *os.File) (*os.Process, error) {
	if !filepath.IsAbs(path) || !filepath.IsAbs(logFile) {
		return nil, fmt.Errorf("start %q with log %q: both paths must be absolute", path, logFile)
	}
	if err := os.MkdirAll(filepath.Dir(logFile), 0o700); err != nil {
		return nil, fmt.Errorf("make the log's directory: %w", err)
	}
	log, err := os.OpenFile(logFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	defer log.Close()
	if in == nil {
		if in, err = os.Open(os.DevNull); err != nil {
			return nil, err
		}
		defer in.Close()
	}
	if err := CloseOnExec(); err != nil {
		return nil, err
	}
	p, err := os.StartProcess(path, argv, &os.ProcAttr{
		Dir: "/", Env: WithoutTag(env), Files: []*os.File{in, log, log},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("start detached: %w", err)
	}
	return p, nil
}

// CloseOnExec marks every descriptor above 2, so that no program started later inherits
// it. Go opens its own that way; this is for inherited ones.
func CloseOnExec() error {
	if markAll() == nil {
		return nil
	}
	return markEach()
}

// markEach marks one descriptor after the other.
func markEach() error {
	fds, err := os.ReadDir("/dev/fd")
	if err != nil {
		return fmt.Errorf("list descriptors: %w", err)
	}
	for _, e := range fds {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
			_, _ = unix.FcntlInt(uintptr(fd), unix.F_SETFD, unix.FD_CLOEXEC) // fails for the descriptor that read the directory
		}
	}
	return nil
}
