// Package ipc is the door between the daemon and the commands of the same user on the
// same machine: a unix socket that no other user can reach, and a lock, so that only one
// process serves it.
//
//	l, err := ipc.Listen(path) // *LockedError when a daemon is already running
//	conn, err := ipc.Dial(ctx, path) // ErrNotRunning when none does
//
// Three things keep others out: the directory belongs to the user alone, so does the
// socket, and each side asks the kernel who the other is. All of the user's own programs
// may connect: their rights are decided behind the door.
package ipc

import (
	"errors"
	"fmt"
)

// ErrNotRunning is returned by Dial when nobody listens at the path.
var ErrNotRunning = errors.New("no process listens")

// LockedError is returned by Lock and Listen when another process holds the lock.
type LockedError struct {
	Path string
	Pid  int // the holder; 0 while it has not written its number
}

func (e *LockedError) Error() string {
	if e.Pid == 0 {
		return fmt.Sprintf("%s is locked by another process", e.Path)
	}
	return fmt.Sprintf("%s is locked by process %d", e.Path, e.Pid)
}
