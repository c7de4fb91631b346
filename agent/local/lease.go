package local

import (
	"context"
	"sync"
	"time"

	"tether/agent/term"
)

// leaseGrace is how long a leased terminal lives without a follower: long enough for the
// follower to come back after a restart of the daemon.
const leaseGrace = 15 * time.Second

// leases end terminals whose leaseholder, the program that started them, has gone without
// ending them. The zero value is ready to use.
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

// expect begins the lease of a terminal that was just started, before anybody holds it.
func (l *leases) expect(h term.Handle) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ofLocked(h)
}

// resume begins the leases of terminals that an earlier daemon has left: their followers
// come back, or have ended meanwhile.
func (l *leases) resume(access func(term.Actor) term.Access) {
	for _, h := range access(term.User).List() {
		if i := h.Info(); i.Leased && i.Exit == nil {
			if own, err := access(i.Owner).Terminal(i.ID); err == nil {
				l.expect(own)
			}
		}
	}
}

// take holds the lease for actor until leave is called. Only an actor that may kill the
// terminal may lease it.
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

// lapse ends a terminal for which no follower came back. If it was promoted meanwhile,
// the agent may not kill it any more, and it stays.
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

// close stops all leases from expiring, and waits for lapse where it is running.
func (l *leases) close() {
	l.mu.Lock()
	l.closed = true
	for _, one := range l.held {
		one.timer.Stop()
	}
	l.mu.Unlock()
	l.kills.Wait()
}
