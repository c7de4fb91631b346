//go:build linux || darwin

package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	signals "os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// StartSession starts a program that lives on when this process and its terminal are
// gone, as StartDetached does, but without a log: it reads nothing, its output goes
// nowhere, and it gets extra as descriptors 3 and up, see Inherited. path is absolute;
// argv is the whole argument list; env is the whole environment. The caller may Wait, to
// learn of its end, or Release.
func StartSession(path string, argv, env []string, extra ...*os.File) (*os.Process, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("start %q: the path must be absolute", path)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	if err := CloseOnExec(); err != nil {
		return nil, err
	}
	p, err := os.StartProcess(path, argv, &os.ProcAttr{
		Dir: "/", Env: env, Files: append([]*os.File{null, null, null}, extra...),
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("start in a new session: %w", err)
	}
	return p, nil
}

// InSession makes c, when it is started, the leader of a session of its own, as Tree
// wants its leader to be.
func InSession(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// Inherited returns the file that StartSession was given as the i-th extra one, in the
// program that it has started; nil if there cannot be one.
func Inherited(i int) *os.File {
	if i < 0 {
		return nil
	}
	return os.NewFile(uintptr(3+i), "inherited")
}

// StopSignals is for a process in a session of its own: it makes hang-up, interrupt and
// broken pipes harmless, and returns a channel that gets a value when the process is
// asked to end (SIGTERM). Programs it starts have the default actions. It is for the
// whole process and for good.
func StopSignals() <-chan os.Signal {
	stop := make(chan os.Signal, 1)
	signals.Notify(stop, unix.SIGTERM)
	// Handled, not ignored: ignored signals stay ignored in programs started later.
	// Nobody reads, and the runtime does not wait.
	signals.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGPIPE)
	return stop
}

// Terminate asks a process to end, by SIGTERM. If the process has already ended, that is
// no error.
func Terminate(p *os.Process) error {
	if err := p.Signal(unix.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ask process %d to end: %w", p.Pid, err)
	}
	return nil
}
