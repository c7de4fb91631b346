package link

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

// Pinged is a channel whose other end answers pings, such as a wsconn.Conn.
type Pinged interface {
	Ping(ctx context.Context) error
	Written() int64
}

// Pulse detects that the peer of a connection is gone without notice: a machine that was
// switched off, a network that swallows everything. A peer that is silent for the limit
// is Pinged, at most an eighth of the limit later. The timer fires once in that time, and
// the timers of all connections fire together, so that an idle host seldom wakes.
type Pulse struct {
	// Set once.
	Limit   time.Duration
	Epoch   time.Time   // the same for all connections of a host
	Channel Pinged      // nil: it is not watched
	Sending func() bool // a write is under way, whose end is watched already
	Gone    func()      // called when the peer does not answer

	timer *time.Timer

	heard atomic.Int64 // when something last arrived, in nanoseconds from Epoch
	taken atomic.Int64 // how much the socket had taken at that time
}

// Watch watches until the function that it returns is called.
func (p *Pulse) Watch(ctx context.Context) (stop func()) {
	if p.Channel == nil {
		return func() {}
	}
	ctx, end := context.WithCancel(ctx)
	p.Note()
	ready := make(chan struct{})
	p.timer = time.AfterFunc(p.wait(p.Limit), func() { <-ready; p.check(ctx) })
	close(ready)
	return func() { end(); p.timer.Stop() }
}

// Note is called when something has arrived.
func (p *Pulse) Note() {
	if p.Channel != nil {
		p.heard.Store(int64(time.Since(p.Epoch)))
		p.taken.Store(p.Channel.Written())
	}
}

// quiet returns how long nothing has arrived.
func (p *Pulse) quiet() time.Duration { return time.Since(p.Epoch) - time.Duration(p.heard.Load()) }

// timeout returns how long a ping may take: it arrives after everything that was sent
// since the peer was last heard.
func (p *Pulse) timeout() time.Duration {
	return p.Limit + time.Duration(min(p.Channel.Written()-p.taken.Load(), maxOnItsWay))*time.Second/slowest
}

// check is called by the timer.
func (p *Pulse) check(ctx context.Context) {
	if quiet := p.quiet(); quiet < p.Limit {
		p.timer.Reset(p.wait(p.Limit - quiet))
		return
	}
	if !p.Sending() {
		within, cancel := context.WithTimeout(ctx, p.timeout())
		err := p.Channel.Ping(within)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			p.Note()
		case p.quiet() >= p.Limit && !p.Sending():
			p.Gone()
			return
		}
	}
	p.timer.Reset(p.wait(p.Limit))
}

// wait returns the time until the first common moment of all connections that is at least
// d away.
func (p *Pulse) wait(d time.Duration) time.Duration {
	grid := max(p.Limit/8, 1)
	now := time.Since(p.Epoch)
	due := now + d + grid - 1
	return due - due%grid - now
}
