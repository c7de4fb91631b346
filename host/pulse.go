package host

import (
	"context"
	"sync/atomic"
	"time"

	"tether/jsonrpc"
)

// slowest is the assumed minimum reading speed of a peer, in bytes a second, when a ping waits behind other data.
const slowest = 8 << 10

// maxOnItsWay bounds how much data taken by the socket can still be in transit: sockets and proxies keep some MB, however much was sent
// since the peer's last message.
const maxOnItsWay = 16 << 20 // bytes

// pulse detects that the peer of a connection is gone without notice: a machine that was switched off, a network that swallows everything.
// A peer that is silent for the limit is pinged, at most an eighth of the limit later. The timer fires once in that time, and the timers of
// all connections fire together, so that an idle host seldom wakes.
type pulse struct {
	// Set once.
	limit time.Duration
	ping  func(context.Context) error
	guard *stallGuard
	gone  func() // called when the peer does not answer
	ctx   context.Context
	end   context.CancelFunc
	timer *time.Timer

	heard atomic.Int64 // when something last arrived, in nanoseconds from guard.epoch
	taken atomic.Int64 // how much the socket had taken at that time
}

// watch starts watching, until the function that it returns is called. It does not watch a channel without pings.
func (p *pulse) watch(ctx context.Context, ch jsonrpc.Channel) (stop func()) {
	pinger, ok := ch.(interface{ Ping(context.Context) error })
	if !ok {
		return func() {}
	}
	p.ping = pinger.Ping
	p.ctx, p.end = context.WithCancel(ctx)
	p.note()
	ready := make(chan struct{})
	p.timer = time.AfterFunc(p.wait(p.limit), func() { <-ready; p.check() })
	close(ready)
	return func() { p.end(); p.timer.Stop() }
}

// note is called when something has arrived.
func (p *pulse) note() {
	p.heard.Store(int64(p.guard.now()))
	p.taken.Store(p.guard.sent())
}

// quiet returns how long nothing has arrived.
func (p *pulse) quiet() time.Duration { return p.guard.now() - time.Duration(p.heard.Load()) }

// timeout returns how long a ping may take: it arrives after everything that was sent since the peer was last heard.
func (p *pulse) timeout() time.Duration {
	return p.limit + time.Duration(min(p.guard.sent()-p.taken.Load(), maxOnItsWay))*time.Second/slowest
}

// check is called by the timer. While something is being sent, the stallGuard watches instead.
func (p *pulse) check() {
	if quiet := p.quiet(); quiet < p.limit {
		p.timer.Reset(p.wait(p.limit - quiet))
		return
	}
	if !p.guard.sending() {
		ctx, cancel := context.WithTimeout(p.ctx, p.timeout())
		err := p.ping(ctx)
		cancel()
		switch {
		case p.ctx.Err() != nil:
			return
		case err == nil:
			p.note()
		case p.quiet() >= p.limit && !p.guard.sending():
			p.gone()
			return
		}
	}
	p.timer.Reset(p.wait(p.limit))
}

// wait returns the time until the first common moment of all connections that is at least d away.
func (p *pulse) wait(d time.Duration) time.Duration {
	grid := max(p.limit/8, 1)
	now := p.guard.now()
	due := now + d + grid - 1
	return due - due%grid - now
}
