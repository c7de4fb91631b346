//go:build linux || darwin

package pty

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"tether/platform/proc"
)

// unknownCode is the status of a program for which another goroutine waited.
const unknownCode = -1

// reap waits for the program. It is woken by SIGCHLD and asks for this one child without
// blocking: os.Process.Wait would hold a thread per program. It ends, and closes exited,
// when the program has ended.
func (p *PTY) reap(childEnded chan os.Signal) {
	defer signal.Stop(childEnded)
	for !p.tryReap() {
		<-childEnded
	}
	close(p.exited)
}

// tryReap waits for the program if it has ended, and reports whether it has.
func (p *PTY) tryReap() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	var status unix.WaitStatus
	pid, err := unix.Wait4(p.leader.Pid, &status, unix.WNOHANG, nil)
	for errors.Is(err, unix.EINTR) {
		pid, err = unix.Wait4(p.leader.Pid, &status, unix.WNOHANG, nil)
	}
	switch {
	case err != nil: // ECHILD
		p.exit = Exit{Code: unknownCode}
	case pid == 0:
		return false
	default:
		p.exit = exitOf(status)
	}
	p.reaped = true
	return true
}

func exitOf(status unix.WaitStatus) Exit {
	if status.Signaled() {
		return Exit{Code: 128 + int(status.Signal()), Signal: unix.SignalName(status.Signal())}
	}
	return Exit{Code: status.ExitStatus()}
}

// Wait blocks until the program itself has ended and returns how; output may still
// arrive, from its terminal's buffer or from background processes. Any number of
// goroutines may wait, also after Close.
func (p *PTY) Wait() Exit {
	<-p.exited
	return p.exit
}

// Exited is closed when Wait would not block.
func (p *PTY) Exited() <-chan struct{} { return p.exited }

// Kill ends the program and all its descendants, see proc.Tree.Kill: it asks, waits up to
// grace, and kills. Cancelling ctx ends the grace early. It returns when nothing is left
// and the program was waited for; an error names the processes that could not be ended.
// Output written before remains readable.
func (p *PTY) Kill(ctx context.Context, grace time.Duration) error {
	p.mu.Lock()
	tree := proc.Tree{Leader: p.leader, Reaped: p.reaped, Tag: p.tag, Adopted: p.adopted, Spare: p.spare}
	p.mu.Unlock()
	if err := tree.Kill(ctx, grace); err != nil {
		return fmt.Errorf("kill terminal's processes: %w", err)
	}
	<-p.exited
	return nil
}

// Signal sends a signal, by its name with or without SIG, to the process group in the
// foreground, as a key of the terminal would, or to the program's own group if there is
// none. HangUp goes to the program alone, as when its terminal is gone: the shell tells
// its jobs. It returns ErrExited once the program has ended.
func (p *PTY) Signal(name string) error {
	if name == HangUp {
		return p.hangUp()
	}
	sig := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG"))
	if sig == 0 {
		return fmt.Errorf("no such signal: %q", name)
	}
	front := p.foreground()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return ErrExited
	}
	if err := unix.Kill(-front, sig); err != nil {
		return fmt.Errorf("send %s: %w", unix.SignalName(sig), err)
	}
	return nil
}

// hangUp does what the system does with a session whose terminal is gone. When the
// program ends, the system tells the foreground's processes.
func (p *PTY) hangUp() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return ErrExited
	}
	return errors.Join(unix.Kill(p.leader.Pid, unix.SIGHUP), unix.Kill(p.leader.Pid, unix.SIGCONT))
}

// foreground returns the process group in the foreground if a process of this session is
// in it. The terminal remembers the number of a group that has ended, and that number may
// have a new owner.
func (p *PTY) foreground() int {
	front, err := 0, error(nil)
	get := func(fd uintptr) { front, err = unix.IoctlGetInt(int(fd), unix.TIOCGPGRP) }
	if p.conn.Control(get) != nil || err != nil || front <= 1 {
		return p.leader.Pid
	}
	all, err := proc.List()
	if err != nil {
		return p.leader.Pid
	}
	for _, q := range all {
		if q.Group == front && q.Session == p.leader.Pid && !q.Zombie {
			return front
		}
	}
	return p.leader.Pid
}
