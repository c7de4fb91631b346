package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"tether/agent/localapi"
	"tether/internal/retry"
	"tether/platform/dirs"
	"tether/platform/ipc"
	"tether/platform/proc"
	"tether/platform/secret"
)

// LockError says that a process holds the daemon's lock without serving, so that no
// daemon can start.
type LockError struct {
	Path    string
	Pid     int    // 0 where it is not known
	Program string // its name, "" where it is not known
}

func (e *LockError) Error() string {
	return fmt.Sprintf("%s is held by %s, which is no daemon that answers", e.Path, e.holder())
}

// Hint is the remedy.
func (e *LockError) Hint() string {
	if e.Pid == 0 {
		return "end what holds that file"
	}
	return fmt.Sprintf("end process %d if it is not yours to keep, then try again", e.Pid)
}

func (e *LockError) holder() string {
	switch {
	case e.Pid == 0:
		return "another process"
	case e.Program == "":
		return fmt.Sprintf("process %d", e.Pid)
	}
	return fmt.Sprintf("process %d (%.40q)", e.Pid, e.Program)
}

// looks makes this process examine the lock only once at a time: examining takes the lock
// for a moment, and a second examination would mistake that for a daemon.
var looks sync.Mutex

// LockHeld returns the holder of the daemon's lock while no daemon listens, or nil. A
// daemon that begins or ends holds it, too, for some seconds.
func LockHeld(ctx context.Context, d dirs.Dirs) *LockError {
	if listens(ctx, d) {
		return nil
	}
	looks.Lock()
	defer looks.Unlock()
	lock, err := ipc.Lock(lockPath(d))
	if locked, ok := errors.AsType[*ipc.LockedError](err); ok {
		return lockError(locked)
	}
	if err == nil {
		_ = lock.Close() // it goes with the process in any case
	}
	return nil // if the lock cannot be examined, its users report that
}

// listens reports whether a daemon listens on the socket.
func listens(ctx context.Context, d dirs.Dirs) bool {
	conn, err := ipc.Dial(ctx, SocketPath(d))
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// lockError finds the holder of the lock. The kernel's information has priority over the
// number in the file, which any program of the user can write.
func lockError(locked *ipc.LockedError) *LockError {
	e := &LockError{Path: locked.Path, Pid: locked.Pid}
	if pid, err := ipc.Locker(locked.Path); err == nil && pid != 0 {
		e.Pid = pid
	}
	if line := proc.Lineage(e.Pid); len(line) > 0 && len(line[0].Argv) > 0 {
		e.Program = filepath.Base(line[0].Argv[0])
	} else if len(line) == 0 {
		e.Pid = 0 // the process with this number has ended
	}
	return e
}

// isDaemon reports whether the holder may be a daemon that begins or ends: it has written
// its number into the file, and is this program.
func (e *LockError) isDaemon(claimed int) bool {
	return e.Pid != 0 && e.Pid == claimed && e.Program == filepath.Base(os.Args[0])
}

// LockCause is the cause, among the faults, of a lock that is not the daemon's.
const LockCause = "lock"

// reportLock reports in status that the file of the daemon's lock was replaced, so that
// another daemon could start beside it.
func (a *Agent) reportLock() {
	if a.held == nil || a.held.InPlace(lockPath(a.cfg.Dirs)) {
		a.degraded.report(LockCause, "")
		return
	}
	text := fmt.Sprintf("%s was removed or replaced, so that another daemon could start beside this one", lockPath(a.cfg.Dirs))
	if pid := ipc.Holder(lockPath(a.cfg.Dirs)); pid != 0 {
		text += "; " + lockError(&ipc.LockedError{Path: lockPath(a.cfg.Dirs), Pid: pid}).holder() + " holds the new one"
	}
	a.degraded.report(LockCause, text+": tether daemon --replace --background puts it right")
}

// How long a daemon that starts waits for the lock, while no daemon listens. Its holder
// may be a daemon that begins, or one that ends, which takes up to 9 s; or it may be
// tether status, which examines the terminals.
const (
	lockTimeout    = 10 * time.Second
	foreignTimeout = time.Second // for another program
	lockEvery      = 5 * time.Millisecond
)

// lock makes this the only daemon with these directories. The socket has a lock too, but
// it exists only after everything else was opened.
func (a *Agent) lock(ctx context.Context) (*ipc.Held, error) {
	if err := secret.Dir(a.cfg.Dirs.Runtime); err != nil {
		return nil, err
	}
	return waitLock(ctx, a.cfg.Dirs, a.cfg.Replace)
}

// waitLock takes the lock of a daemon once it is free. If a daemon listens, it waits for
// the end of that only with replace. Errors: a *RunningError, or a *LockError if nobody
// listens, also when ctx ends.
func waitLock(ctx context.Context, d dirs.Dirs, replace bool) (*ipc.Held, error) {
	wait, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	foreign := 0 // looks in succession: between two holders the file has the former one's number
	for began := time.Now(); ; {
		lock, err := lockDaemon(d)
		running, ok := errors.AsType[*RunningError](err)
		if !ok {
			return lock, err
		}
		waited := time.Since(began)
		late := !retry.Wait(wait, max(lockEvery, waited/100))
		if listens(context.WithoutCancel(ctx), d) {
			if late || !replace {
				return nil, err
			}
		} else if late || waited > foreignTimeout {
			held := lockError(&ipc.LockedError{Path: lockPath(d), Pid: running.Pid})
			if foreign++; held.isDaemon(running.Pid) {
				foreign = 0
			}
			if late || foreign > 3 {
				return nil, held
			}
		}
	}
}

// lockDaemon takes the lock of a daemon.
func lockDaemon(d dirs.Dirs) (*ipc.Held, error) {
	lock, err := ipc.Lock(lockPath(d))
	if locked, ok := errors.AsType[*ipc.LockedError](err); ok {
		return nil, &RunningError{locked.Pid}
	}
	return lock, err
}

// Running returns the process id of the daemon that serves the directories, even if it
// does not answer; 0 if there is none, or if it has not written its number into the lock
// file.
func Running(d dirs.Dirs) int {
	looks.Lock()
	defer looks.Unlock()
	lock, err := lockDaemon(d)
	if running, ok := errors.AsType[*RunningError](err); ok {
		return running.Pid
	}
	if err == nil {
		_ = lock.Close() // it goes with the process in any case
	}
	return 0
}

// EndSilent ends the daemon that serves the directories, which does not answer: its
// process may be stopped, for example. Terminals with holders run on. It does not wait
// for the end. If another program holds the daemon's lock, it returns a *LockError and
// ends nothing.
func EndSilent(d dirs.Dirs) error {
	pid := Running(d)
	if pid == 0 {
		return nil
	}
	held := lockError(&ipc.LockedError{Path: lockPath(d), Pid: pid})
	if !held.isDaemon(pid) {
		return held
	}
	p, err := os.FindProcess(pid)
	if err == nil {
		err = p.Kill()
	}
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

func lockPath(d dirs.Dirs) string { return filepath.Join(d.Runtime, localapi.LockName) }
