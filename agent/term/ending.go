package term

import (
	"cmp"
	"context"
	"sync"
	"time"

	"tether/platform/pty"
)

// ending is how the terminal ends, why, and who knows of it. exit is set once, by the last mark, from the earlier reason; a terminal that
// has a reason and no exit is being ended. Guarded by the terminal's mutex, except for waiting on told.
type ending struct {
	exit         *Exit           // nil while it runs
	reason       ExitReason      // why it ends; "" while nobody has ended it
	kills        int             // calls of terminate under way
	heard        map[string]bool // hosts that know of the exit
	kept         bool            // the holder must keep the output for the next daemon; never true again once it is false
	known        bool            // the daemon before this one has recorded the exit
	reported     chan struct{}   // made at construction; closed when nobody needs the holder any more
	reportedOnce sync.Once
}

// because notes why the terminal is ended; the first reason counts.
func (e *ending) because(why ExitReason) { e.reason = cmp.Or(e.reason, why) }

// exitOf is the exit to report.
func (e *ending) exitOf(how outcome, status pty.Exit, at time.Time) Exit {
	if how == lost {
		return Exit{Code: -1, Reason: ReasonLost, At: at}
	}
	return Exit{Code: status.Code, Signal: status.Signal, Reason: cmp.Or(e.reason, ReasonExited), At: at}
}

func (e *ending) hear(host string) {
	if e.heard == nil {
		e.heard = map[string]bool{}
	}
	e.heard[host] = true
}

// knownTo reports whether the terminal has exited, is not kept, and these hosts and any caller of Kill know it.
func (e *ending) knownTo(hosts []string) bool {
	if e.exit == nil || e.kills > 0 || e.kept {
		return false
	}
	for _, host := range hosts {
		if !e.heard[host] {
			return false
		}
	}
	return true
}

func (e *ending) tell() { e.reportedOnce.Do(func() { close(e.reported) }) }

// condemn notes that the terminal ends, if a may kill it: a promotion comes before, and then a may not, or not at all.
func (t *Terminal) condemn(a Actor) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := Allow(a, OpKill, t.infoLocked())
	if err == nil && t.ending.exit == nil {
		t.ending.because(ReasonKilled)
	}
	return err
}

// terminate kills the process tree and waits until the exit was recorded or ctx ends. Killing an exited terminal does nothing. The first
// reason counts.
func (t *Terminal) terminate(ctx context.Context, why ExitReason) error {
	t.mu.Lock()
	t.ending.because(why)
	t.ending.kills++ // the holder is needed until its Kill has returned
	t.life.kill()
	t.needLocked()
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		t.ending.kills--
		t.tellLocked()
		t.mu.Unlock()
	}()
	select {
	case <-t.life.done:
		return nil
	default:
	}
	if err := t.pty.Kill(ctx, t.pool.opts.KillGrace); err != nil {
		return err
	}
	select {
	case <-t.life.done:
		return nil
	case <-t.life.left:
		return ErrLeft
	case <-ctx.Done():
		return ctx.Err()
	}
}
