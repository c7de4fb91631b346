//go:build linux || darwin

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"tether/internal/retry"
)

const (
	sweepBound = 5 * time.Second // how long a sweep tries; only a process stuck in the kernel lasts that long
	sweepLooks = 20              // and how often at least: on a starved machine one look may take a second
)

// Tree is everything that runs because a session leader was started: its session, its
// descendants, and the processes that left both but carry the tag in their environment.
//
// Unless this process adopts orphans, one kind is not found: a process that started its
// own session, lost its parent and cleared or overwrote its environment, all before Kill
// began. On macOS also one with its environment intact, see tagged.
type Tree struct {
	Leader ID // its pid is the id of the session
	// Reaped says that the leader has been waited for. Its number may then belong to
	// someone else, so that membership of the session no longer proves anything; the tag
	// does.
	Reaped bool
	Tag    string // environment entry NAME=value, "" for none
	// Adopted reports that this process has no children except the leader and orphans of
	// its tree, see AdoptOrphans.
	Adopted bool
	// Spare, if not nil, reports which adopted processes do not belong to the tree, nor
	// do their descendants.
	Spare func(pid int) bool
}

// Kill ends the tree. It sends TERM, and CONT so that stopped processes hear it. After
// half of the grace it sends HUP within the session; processes that ignore TERM, as
// interactive shells do, get it at once. It waits up to grace for all to end, then stops
// the remaining processes, so that none forks any more, and kills them. It looks again
// until it finds nothing. A cancelled ctx ends the grace, not the killing, so Kill takes
// at most grace plus about 5 s; then the error names the survivors. Kill never signals
// process 1, the calling process, or another user's process; if it leaves one of those,
// the error names it. Another goroutine must reap the leader.
func (t Tree) Kill(ctx context.Context, grace time.Duration) error {
	h := hunt{tree: t, known: map[ID]bool{}, asked: map[ID]bool{}, hung: map[ID]bool{}}
	gone, err := h.ask(ctx, grace)
	if err != nil {
		return t.killGroup(err)
	}
	if gone && len(h.known) == 0 && h.whole && !h.unsure {
		return nil // there was nothing to begin with
	}
	return h.sweep()
}

// killGroup is the fallback without a process table.
func (t Tree) killGroup(cause error) error {
	if !t.Reaped && t.Leader.Pid > 1 {
		if err := unix.Kill(-t.Leader.Pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
			cause = errors.Join(cause, err)
		}
	}
	return fmt.Errorf("killed only the process group of %d: %w", t.Leader.Pid, cause)
}

// hunt is one run of Tree.Kill, owned by its goroutine.
type hunt struct {
	tree  Tree
	known map[ID]bool // all that ever belonged: their children belong too
	asked map[ID]bool // processes that were sent TERM
	hung  map[ID]bool // processes that were sent HUP
	alien []Info      // processes of the last look that belong to the tree but run as another user
	// stopped is nil while asking. While sweeping it holds the stopped processes, each as
	// soon as it was seen.
	stopped map[ID]bool
	news    bool // the last look stopped a process
	whole   bool // the last look saw all there was
	unsure  bool // the last look saw a process that may or may not belong
}

// ask tells all to end and waits. It reports whether nothing was left at the last look.
func (h *hunt) ask(ctx context.Context, grace time.Duration) (gone bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	began := time.Now()
	for pause := pauseFirst; ; pause = min(2*pause, pauseLast) {
		live, err := h.find()
		if err != nil || len(live) == 0 {
			return err == nil, err
		}
		for _, p := range live {
			h.askOne(p, time.Since(began) >= grace/2)
		}
		if !retry.Wait(ctx, pause) {
			return false, nil
		}
	}
}

// askOne tells one process to end, once by each signal. HUP comes late, since by default
// it ends a program at once, even one that has begun to end in order; but interactive
// shells ignore TERM and understand only HUP. A daemon with a session of its own takes
// HUP for "read your configuration again" and never gets it. Errors mean that the process
// has just ended, or will be among the survivors.
func (h *hunt) askOne(p Info, late bool) {
	if !h.asked[p.ID] {
		h.asked[p.ID] = true
		_ = signal(p.ID, unix.SIGTERM)
		_ = signal(p.ID, unix.SIGCONT)
	}
	if !h.hung[p.ID] && p.Session == h.tree.Leader.Pid && (late || ignores(p, unix.SIGTERM)) {
		h.hung[p.ID] = true
		_ = signal(p.ID, unix.SIGHUP)
	}
}

// Looks that find nothing count towards the end of a sweep: two are enough when they were
// whole, several when a process may just have been born during each. One that saw a
// process in the middle of execve, which shows no environment, does not count.
const (
	cleanEnough  = 6
	cleanWhole   = 3
	cleanPartial = 1
)

// sweep stops and kills processes until certainly none is left.
func (h *hunt) sweep() error {
	h.stopped = map[ID]bool{}
	var live []Info
	var err error
	pause, clean := pauseFirst, 0
	end := time.Now().Add(sweepBound)
	for looks := 0; looks < sweepLooks || time.Now().Before(end); looks++ {
		if live, err = h.find(); err != nil {
			return err
		}
		switch {
		case h.news: // they may have had children before they stopped: look again before any parent is gone
			clean = 0
			continue
		case len(live) > 0:
			clean = 0
		case h.unsure:
			clean = 0
		case h.whole:
			clean += cleanWhole
		default:
			clean += cleanPartial
		}
		if clean >= cleanEnough {
			return left("processes of other users were not killed", h.alien)
		}
		for _, p := range live {
			_ = signal(p.ID, unix.SIGKILL)
		}
		retry.Wait(context.Background(), pause)
		pause = min(2*pause, pauseLast)
	}
	return left("processes still running after SIGKILL", live)
}

// left is the error that names processes, nil if there are none.
func left(what string, some []Info) error {
	if len(some) == 0 {
		return nil
	}
	pids := make([]int, len(some))
	for i, p := range some {
		pids[i] = p.Pid
	}
	return fmt.Errorf("%s: pid %v", what, pids)
}

// find reads the process table and returns the processes of the tree that have not ended.
func (h *hunt) find() (live []Info, err error) {
	h.news, h.unsure, h.alien = false, false, h.alien[:0]
	self := os.Getpid()
	children := map[int][]Info{}
	var queue []Info
	h.whole, err = scan(func(p Info) {
		if p.Zombie || p.Pid <= 1 || p.Pid == self {
			return // not as a parent either: its other children are not of the tree
		}
		children[p.Parent] = append(children[p.Parent], p)
		if h.isRoot(p) {
			h.stop(p)
			queue = append(queue, p)
		}
	})
	for seen := map[ID]bool{}; len(queue) > 0; queue = queue[1:] {
		p := queue[0]
		if seen[p.ID] {
			continue
		}
		seen[p.ID] = true
		h.known[p.ID] = true
		queue = append(queue, children[p.Pid]...)
		if mine(p) {
			h.stop(p)
			live = append(live, p)
		} else {
			h.alien = append(h.alien, p)
		}
	}
	return live, err
}

// stop stops one of our processes once, if this look is for stopping. A process of
// another user is never signalled.
func (h *hunt) stop(p Info) {
	if h.stopped == nil || h.stopped[p.ID] || !mine(p) {
		return
	}
	h.stopped[p.ID] = true
	h.news = true
	_ = signal(p.ID, unix.SIGSTOP)
}

// isRoot tells whether p belongs by itself, not only through its parent.
func (h *hunt) isRoot(p Info) bool {
	switch t := h.tree; {
	case h.known[p.ID], p.ID == t.Leader:
		return true
	case p.Start < t.Leader.Start:
		return false
	case !t.Reaped && p.Session == t.Leader.Pid:
		return true
	case t.Adopted && p.Parent == os.Getpid():
		return t.Spare == nil || !t.Spare(p.Pid)
	case t.Tag == "":
		return false
	default:
		yes, unsure := tagged(p.Pid, t.Tag)
		h.unsure = h.unsure || unsure
		return yes
	}
}
