package proc

import (
	"errors"
	"os"
	signals "os/signal"
	"time"

	"golang.org/x/sys/unix"
)

// AdoptOrphans makes this process the parent of every descendant that loses its own
// parent, even if it has left its session and cleared its environment
// (PR_SET_CHILD_SUBREAPER). It must then call ReapOrphans when a child ends.
func AdoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// reapEvery bounds how often ReapOrphans looks for ended children; an ended child may
// stay a zombie for that long.
const reapEvery = 100 * time.Millisecond

// ReapOrphans waits for children that end, until done is closed. It leaves out the one
// with the number spare, for which another goroutine waits.
func ReapOrphans(spare int, done <-chan struct{}) {
	ended := make(chan os.Signal, 1)
	signals.Notify(ended, unix.SIGCHLD)
	defer signals.Stop(ended)
	self := os.Getpid()
	for {
		select {
		case <-done:
			return
		case <-ended:
		}
		select {
		case <-done:
			return
		case <-time.After(reapEvery):
		}
		_, _ = scan(func(p Info) {
			if p.Zombie && p.Parent == self && p.Pid != spare {
				_, _ = unix.Wait4(p.Pid, nil, unix.WNOHANG, nil)
			}
		})
	}
}

// WaitForAll waits until this process has no child any more, nor, where it has adopted
// orphans, a descendant. Nobody else may wait for a child meanwhile.
func WaitForAll() {
	for {
		if _, err := unix.Wait4(-1, nil, 0, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// Children reports whether this process has a child. Nobody else may wait for a child
// meanwhile.
func Children() bool {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return false
		}
		if err == nil && pid == 0 {
			return true
		}
	}
}

// AgentMembers reports errors.ErrUnsupported: only Windows has jobs.
func AgentMembers(string) ([]int, error) { return nil, errors.ErrUnsupported }
