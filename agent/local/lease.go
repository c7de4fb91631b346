package local

import (
	"context"
	"sync"
	"time"

	"tether/agent/term"
)

// leaseGrace is how long a leased terminal lives without anybody who follows it: long enough to come back after the daemon was restarted.
const leaseGrace = 15 * time.Second

// leases end terminals whose program has gone silently. The zero value is ready to use.
//
//	         take                      leave, and it was the last
//	waiting ──────▶ held ─────────────────────────▶ waiting
//	   └─ leaseGrace ─▶ killed, as far as its leaseholder may
type leases struct {
	mu     sync.Mutex
	held   map[term.ID]*lease
	closed bool
	kills  sync.WaitGroup
}

// lease is guarded by leases.mu.
type lease struct {
	followers int
	timer     *time.Timer // runs while nobody holds the lease
}

// expect begins the lease of a terminal that was just started.
func (l *leases) expect(h term.Handle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ofLocked(h)
}

// resume begins the leases of terminals that an earlier daemon has left: their followers come back, or have ended with it.
func (l *leases) resume(access func(term.Actor) term.Access) {
	for _, h := range access(term.User).List() {
		if i := h.Info(); i.Leased && i.Exit == nil {
			if own, err := access(i.Owner).Terminal(i.ID); err == nil {
				l.expect(own)
			}
		}
	}
}

// take holds the lease for actor until leave is called. Only an actor that may kill the terminal may lease it.
func (l *leases) take(actor term.Actor, h term.Handle) (leave func(), err error) {
	if err := term.Allow(actor, term.OpKill, h.Info()); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.ofLocked(h)
	one.followers++
	one.timer.Stop()
	return func() { l.leave(h, one) }, nil
}

func (l *leases) leave(h term.Handle, one *lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	one.followers--
	if h.Info().Exit != nil {
		one.timer.Stop()
		delete(l.held, h.ID())
		return
	}
	if one.followers == 0 && !l.closed {
		one.timer.Reset(leaseGrace)
	}
}

// ofLocked returns the terminal's lease, a waiting one if it had none.
func (l *leases) ofLocked(h term.Handle) *lease {
	if one := l.held[h.ID()]; one != nil {
		return one
	}
	if l.held == nil {
		l.held = map[term.ID]*lease{}
	}
	one := &lease{}
	one.timer = time.AfterFunc(leaseGrace, func() { l.lapse(h, one) })
	if l.closed {
		one.timer.Stop()
	}
	l.held[h.ID()] = one
	return one
}

// lapse ends a terminal that nobody came back for. One that has become the person's meanwhile is not the agent's to kill any more, and
// stays.
func (l *leases) lapse(h term.Handle, one *lease) {
	l.mu.Lock()
	if one.followers > 0 || l.closed {
		l.mu.Unlock()
		return
	}
	delete(l.held, h.ID())
	l.kills.Add(1)
	l.mu.Unlock()
	defer l.kills.Done()
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	_ = h.Kill(ctx) // as the agent; the pool ends the rest
}

// close lets no more leases expire and waits for those that are expiring.
func (l *leases) close() {
	l.mu.Lock()
	l.closed = true
	for _, one := range l.held {
		one.timer.Stop()
	}
	l.mu.Unlock()
	l.kills.Wait()
}
