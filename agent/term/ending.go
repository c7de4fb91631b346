package term

import (
	"cmp"
	"context"
	"sync"
	"time"

	"tether/platform/pty"
	"tether/vocab"
)

// ending records how the terminal ends, why, and who knows of it. exit is set once, with
// the last mark. A terminal that has a reason but no exit is being ended. Guarded by the
// terminal's mutex, except for waiting on reported.
type ending struct {
	exit         *vocab.Exit      // nil while it runs
	reason       vocab.ExitReason // why it is being ended; "" while nobody has ended it
	kills        int              // calls of terminate under way
	heard        map[string]bool  // hosts that know of the exit
	kept         bool             // the holder must keep the output for the next daemon; never true again once it is false
	known        bool             // the former daemon has recorded the exit
	reported     chan struct{}    // made at construction; closed when nobody needs the holder any more
	reportedOnce sync.Once
}

// because records why the terminal is being ended; the first reason counts.
func (e *ending) because(why vocab.ExitReason) { e.reason = cmp.Or(e.reason, why) }

// exitOf returns the exit to record.
func (e *ending) exitOf(how outcome, status pty.Exit, at time.Time) vocab.Exit {
	if how == lost {
		return vocab.Exit{Code: -1, Reason: vocab.ExitLost, At: at}
	}
	return vocab.Exit{Code: status.Code, Signal: status.Signal, Reason: cmp.Or(e.reason, vocab.ExitItself), At: at}
}

func (e *ending) hear(host string) {
	if e.heard == nil {
		e.heard = map[string]bool{}
	}
	e.heard[host] = true
}

// knownTo reports whether the terminal has exited, its holder need not keep it, and these
// hosts and all callers of Kill know of the exit.
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

// condemn records that the terminal is being killed, if a may kill it. It checks under
// the same lock, so that a promotion comes either before, and then a may not kill it, or
// never.
func (t *Terminal) condemn(a Actor) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := Allow(a, OpKill, t.infoLocked())
	if err == nil && t.ending.exit == nil {
		t.ending.because(vocab.ExitKilled)
	}
	return err
}

// terminate kills the process tree and waits until the exit was recorded or ctx ends.
// Killing an exited terminal does nothing. The first reason counts.
func (t *Terminal) terminate(ctx context.Context, why vocab.ExitReason) error {
	t.mu.Lock()
	t.ending.because(why)
	t.ending.kills++ // the holder is needed until Kill has returned
	t.life.kill()
	t.log.LetGo()
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
