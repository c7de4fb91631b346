package uplink_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"tether/agent/uplink"
	"tether/ahp/client"
	"tether/jsonrpc"
)

// network is the network between a link and its host: it may work, refuse or swallow
// attempts, and kill connections silently. It replaces uplink.Options.Connect.
type network struct {
	open chan struct{} // closed when dial is set
	dial func() (jsonrpc.Channel, error)

	mu       sync.Mutex
	forbids  bool // attempts are forbidden
	refuses  bool // attempts fail at once
	swallows bool // attempts get no answer
	attempts []time.Time
	wires    []*wire
}

func newNetwork() *network { return &network{open: make(chan struct{})} }

// over applies the network to dial.
func (w *network) over(dial func() (jsonrpc.Channel, error)) {
	w.dial = dial
	close(w.open)
}

func (w *network) connect(ctx context.Context, _ client.Endpoint, o client.Options) (*client.Conn, error) {
	<-w.open
	w.mu.Lock()
	w.attempts = append(w.attempts, time.Now())
	forbids, refuses, swallows := w.forbids, w.refuses, w.swallows
	w.mu.Unlock()
	switch {
	case forbids:
		return nil, client.ErrUnauthorized
	case refuses:
		return nil, errDown
	case swallows:
		<-ctx.Done()
		return nil, errDown
	}
	ch, err := w.dial()
	if err != nil {
		return nil, err
	}
	c := &wire{Channel: ch, dead: make(chan struct{}), closed: make(chan struct{})}
	locked(&w.mu, func() { w.wires = append(w.wires, c) })
	return client.ConnectChannel(ctx, c, o)
}

// turn changes the network; bad network takes all connections with it, and neither end is
// told.
func (w *network) turn(refuses, swallows bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuses, w.swallows = refuses, swallows
	if refuses || swallows {
		w.kill()
	}
}

// cut ends all connections, and both ends are told; while refuses, no new ones come
// about.
func (w *network) cut(refuses bool) {
	w.mu.Lock()
	wires := w.wires
	w.wires, w.refuses = nil, refuses
	w.mu.Unlock()
	for _, c := range wires {
		c.Close()
	}
}

func (w *network) kill() {
	for _, c := range w.wires {
		c.die.Do(func() { close(c.dead) })
	}
	w.wires = nil
}

// tries returns the attempts since then, and how many there were.
func (w *network) tries() []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]time.Time(nil), w.attempts...)
}

// in is for newWorld.
func (w *network) in(o *uplink.Options) { o.Connect = w.connect }

// wire is a channel that may die: then sent messages are lost and none arrive.
type wire struct {
	jsonrpc.Channel
	dead, closed chan struct{}
	die, close   sync.Once

	drops atomic.Pointer[func(msg []byte) bool] // messages to drop while it lives; nil for none
}

func (c *wire) Send(ctx context.Context, msg []byte) error {
	select {
	case <-c.dead:
		return nil
	default:
	}
	if drops := c.drops.Load(); drops != nil && (*drops)(msg) {
		return nil
	}
	return c.Channel.Send(ctx, msg)
}

func (c *wire) Recv(ctx context.Context) ([]byte, error) {
	msg, err := c.Channel.Recv(ctx)
	select {
	case <-c.dead:
		<-c.closed
		return nil, net.ErrClosed
	default:
		return msg, err
	}
}

func (c *wire) Close() error {
	c.close.Do(func() { close(c.closed) })
	return c.Channel.Close()
}
