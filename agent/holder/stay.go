package holder

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"tether/internal/retry"
	"tether/platform/ipc"
	"tether/platform/proc"
)

// The holder of an agent's terminal is the parent of all processes that the terminal's
// programs leave behind, and stays until those have ended: a program that has left its
// session and cleared its environment still descends from a process with the agent's
// mark. On Windows nothing leaves the agent's job, and the holder keeps that job's name.

// IsAgents reports whether an environment, as NAME=value, belongs to an agent's terminal.
func IsAgents(environ []string) bool {
	return slices.ContainsFunc(environ, func(e string) bool { return strings.HasPrefix(e, proc.AgentVar+"=") })
}

// stay waits until the processes that the terminal's programs have left have ended. It
// keeps neither the log nor any other state for a daemon. If a signal asks the holder to
// end, those processes are ended first: see holder.stop.
func (h *holder) stay() {
	if !h.left() {
		return
	}
	h.mu.Lock()
	h.log, h.notes, h.meta = nil, checkpoints{}, nil
	h.mu.Unlock()
	debug.FreeOSMemory()
	if c, ok := h.child.(inJob); ok {
		c.WaitLeft()
		return
	}
	proc.WaitForAll()
}

// inJob is a child whose job lists the processes that its programs have left.
type inJob interface {
	Left() bool
	WaitLeft()
}

// left reports whether the programs of an agent's terminal have left processes.
func (h *holder) left() bool {
	if c, ok := h.child.(inJob); ok {
		return c.Left()
	}
	return proc.Children()
}

// spare reports whether a process is a daemon or one of its holders. These may have been
// started from the terminal but do not belong to it. They are recognised by locks that
// only they hold.
func (o Options) spare(pid int) bool {
	locks, err := filepath.Glob(filepath.Join(o.Dir, "*"+socketSuffix+lockSuffix))
	if err != nil {
		return false
	}
	if o.Lock != "" {
		locks = append(locks, o.Lock)
	}
	return slices.ContainsFunc(locks, func(path string) bool {
		held, err := ipc.Holds(pid, path)
		return held && err == nil
	})
}

// EndStaying ends the holders in dir that have no terminal any more and only stay for
// processes that an agent's programs have left. It ends those processes, too, and returns
// when they are gone, or ctx ends.
func EndStaying(ctx context.Context, dir string) (n int, err error) {
	locks, err := filepath.Glob(filepath.Join(dir, "*"+socketSuffix+lockSuffix))
	if err != nil {
		return 0, err
	}
	for _, path := range locks {
		if _, err := os.Lstat(strings.TrimSuffix(path, lockSuffix)); err == nil {
			continue // it still has its terminal
		}
		pid := ipc.Holder(path)
		if !holds(pid, path) {
			continue // it has just ended, or another process has written the number
		}
		process, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		n++
		if err := proc.Terminate(process); err != nil {
			return n, err
		}
		for {
			if !holds(pid, path) {
				break
			}
			if !retry.Wait(ctx, 20*time.Millisecond) {
				return n, ctx.Err()
			}
		}
		_ = os.Remove(path) // the holder removes it, but on Windows the question who holds a lock makes the file again
	}
	return n, nil
}

// holds reports whether a process holds a lock. If the system cannot tell, the number in
// the lock file decides.
func holds(pid int, path string) bool {
	held, err := ipc.Holds(pid, path)
	if errors.Is(err, errors.ErrUnsupported) {
		return pid != 0 && ipc.Holder(path) == pid
	}
	return held && err == nil
}
