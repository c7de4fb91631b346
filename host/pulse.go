package host

import (
	"context"
	"sync/atomic"
	"time"
)

// slowest is the assumed minimum reading speed of a peer, in bytes a second, when a ping
// waits behind other data.
const slowest = 8 << 10

// maxOnItsWay bounds how much data taken by the socket can still be in transit: sockets
// and proxies keep some MB, however much was sent since the peer's last message.
const maxOnItsWay = 16 << 20 // bytes

// pinged is a channel whose other end answers pings, such as a wsconn.Conn.
type pinged interface {
	Ping(ctx context.Context) error
	Written() int64
}

// pulse detects that the peer of a connection is gone without notice: a machine that was
// switched off, a network that swallows everything. A peer that is silent for the limit
// is pinged, at most an eighth of the limit later. The timer fires once in that time, and
// the timers of all connections fire together, so that an idle host seldom wakes.
type pulse struct {
	// Set once.
	limit   time.Duration
	epoch   time.Time   // the same for all connections of a host
	ch      pinged      // nil: it is not watched
	sending func() bool // a write is under way, whose end is watched already
	gone    func()      // called when the peer does not answer
	timer   *time.Timer

	heard atomic.Int64 // when something last arrived, in nanoseconds from epoch
	taken atomic.Int64 // how much the socket had taken at that time
}

// watch watches until the function that it returns is called.
func (p *pulse) watch(ctx context.Context) (stop func()) {
	if p.ch == nil {
		return func() {}
	}
	ctx, end := context.WithCancel(ctx)
	p.note()
	ready := make(chan struct{})
	p.timer = time.AfterFunc(p.wait(p.limit), func() { <-ready; p.check(ctx) })
	close(ready)
	return func() { end(); p.timer.Stop() }
}

// note is called when something has arrived.
func (p *pulse) note() {
	if p.ch != nil {
		p.heard.Store(int64(time.Since(p.epoch)))
		p.taken.Store(p.ch.Written())
	}
}

// quiet returns how long nothing has arrived.
func (p *pulse) quiet() time.Duration { return time.Since(p.epoch) - time.Duration(p.heard.Load()) }

// timeout returns how long a ping may take: it arrives after everything that was sent
// since the peer was last heard.
func (p *pulse) timeout() time.Duration {
	return p.limit + time.Duration(min(p.ch.Written()-p.taken.Load(), maxOnItsWay))*time.Second/slowest
}

// check is called by the timer.
func (p *pulse) check(ctx context.Context) {
	if quiet := p.quiet(); quiet < p.limit {
		p.timer.Reset(p.wait(p.limit - quiet))
		return
	}
	if !p.sending() {
		within, cancel := context.WithTimeout(ctx, p.timeout())
		err := p.ch.Ping(within)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			p.note()
		case p.quiet() >= p.limit && !p.sending():
			p.gone()
			return
		}
	}
	p.timer.Reset(p.wait(p.limit))
}

// wait returns the time until the first common moment of all connections that is at least
// d away.
func (p *pulse) wait(d time.Duration) time.Duration {
	grid := max(p.limit/8, 1)
	now := time.Since(p.epoch)
	due := now + d + grid - 1
	return due - due%grid - now
}
