package host

import (
	"context"
	"sync/atomic"
	"time"

	"tether/jsonrpc"
)

// stallGuard checks whether the peer of a connection reads its data. One goroutine sends; any goroutine may call the other methods. The
// timer runs only while a send is in progress, so an idle connection costs nothing.
type stallGuard struct {
	// Set once.
	limit   time.Duration
	socket  *uptake   // bytes that the socket has taken; nil if only whole messages can be counted
	stalled func()    // called when the peer has read nothing for limit
	epoch   time.Time // the same time for all connections of a host

	since atomic.Int64 // nanoseconds from epoch at which the Send in progress began; 0 without one
	armed atomic.Bool  // the timer runs; its starter owns the fields below
}

// begin and end enclose one Send.
func (g *stallGuard) begin() {
	g.since.Store(max(1, int64(g.now())))
	g.arm()
}

func (g *stallGuard) end() { g.since.Store(0) }

// sending reports whether a Send is in progress.
func (g *stallGuard) sending() bool { return g.since.Load() != 0 }

// sent returns how many bytes the socket has taken; 0 if that is not known.
func (g *stallGuard) sent() int64 {
	if g.socket == nil {
		return 0
	}
	return g.socket.bytes.Load()
}

func (g *stallGuard) now() time.Duration { return time.Since(g.epoch) }

// lagging reports whether the peer has left the present message unread for longer than d.
func (g *stallGuard) lagging(d time.Duration) bool {
	since := g.since.Load()
	return since != 0 && g.now()-time.Duration(since) > d
}

func (g *stallGuard) arm() {
	if g.armed.Swap(true) {
		return
	}
	time.AfterFunc(g.limit, g.check)
}

// check is called by the timer.
func (g *stallGuard) check() {
	since := time.Duration(g.since.Load())
	if since == 0 {
		g.armed.Store(false)
		if g.since.Load() != 0 { // a Send that began meanwhile relied on the running timer
			g.arm()
		}
		return
	}
	quiet := g.now() - since
	if g.socket != nil {
		quiet = min(quiet, time.Since(g.socket.last()))
	}
	if quiet >= g.limit {
		g.stalled()
		return
	}
	time.AfterFunc(g.limit-quiet, g.check)
}

// guarded returns ch with its sends watched by g, and received messages counted by p. It has all optional methods of a Channel; a method
// that ch lacks falls back to the closest one that ch has.
func guarded(ch jsonrpc.Channel, g *stallGuard, p *pulse) jsonrpc.Channel {
	return &guardedChannel{ch, g, p}
}

type guardedChannel struct {
	jsonrpc.Channel
	guard *stallGuard
	pulse *pulse
}

// Recv implements jsonrpc.Channel.
func (c *guardedChannel) Recv(ctx context.Context) ([]byte, error) {
	msg, err := c.Channel.Recv(ctx)
	if err == nil {
		c.pulse.note()
	}
	return msg, err
}

// Send implements jsonrpc.Channel.
func (c *guardedChannel) Send(ctx context.Context, msg []byte) error {
	c.guard.begin()
	defer c.guard.end()
	return c.Channel.Send(ctx, msg)
}

// SendMore implements jsonrpc.BatchSender.
func (c *guardedChannel) SendMore(ctx context.Context, msg []byte) error {
	c.guard.begin()
	defer c.guard.end()
	if b, ok := c.Channel.(jsonrpc.BatchSender); ok {
		return b.SendMore(ctx, msg)
	}
	return c.Channel.Send(ctx, msg)
}

// Flush implements jsonrpc.BatchSender.
func (c *guardedChannel) Flush(ctx context.Context) error {
	c.guard.begin()
	defer c.guard.end()
	if b, ok := c.Channel.(jsonrpc.BatchSender); ok {
		return b.Flush(ctx)
	}
	return nil
}

// CloseReason implements jsonrpc.ReasonCloser.
func (c *guardedChannel) CloseReason(code int, reason string) error {
	if rc, ok := c.Channel.(jsonrpc.ReasonCloser); ok {
		return rc.CloseReason(code, reason)
	}
	return c.Close()
}
