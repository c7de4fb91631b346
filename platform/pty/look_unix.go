//go:build linux || darwin

package pty

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"tether/platform/proc"
)

// LookAt looks at the terminal whose master is the descriptor fd, and in which the
// process leader is the first of its session. It does not block.
func LookAt(fd uintptr, leader int) (Look, error) {
	t, err := unix.IoctlGetTermios(int(fd), getTermios)
	if err != nil {
		return Look{}, fmt.Errorf("read terminal settings: %w", err)
	}
	l := Look{Lines: t.Lflag&unix.ICANON != 0, Echo: t.Lflag&unix.ECHO != 0, Reading: proc.ReadsKeyboard(leader)}
	if front, err := unix.IoctlGetInt(int(fd), unix.TIOCGPGRP); err == nil {
		l.Front = max(front, 0)
	}
	return l, nil
}

// Look looks at the terminal. After Close it returns os.ErrClosed. It does not block.
func (p *PTY) Look() (l Look, err error) {
	look := func(fd uintptr) { l, err = LookAt(fd, p.leader.Pid) }
	if p.conn.Control(look) != nil {
		err = os.ErrClosed
	}
	return l, err
}
