package testkit

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"tether/internal/testkit/must"
)

// maxParked is the maximum number of connections that a proxy keeps open although nothing
// passes through them any more. Beyond it, the oldest is closed: otherwise a thousand
// black holes would use up the descriptors of the process.
const maxParked = 16

// Proxy passes the bytes of connections on to a target and breaks each connection as
// planned. Its methods may be called from any goroutine.
//
// Goroutines: one per Listen, which accepts; three for each connection, until it has
// ended. Close, and the test's cleanup, ends and awaits them.
type Proxy struct {
	dial func() (net.Conn, error) // set once
	plan func(n int) Fault        // set once
	work sync.WaitGroup
	done chan struct{} // closed by Close

	mu       sync.Mutex
	closed   bool
	listener net.Listener // nil before Listen
	count    int          // connections so far
	alive    []*faulty    // connections that have not ended
	parked   []*faulty    // oldest first
	struck   map[FaultKind]int
}

// NewProxy returns a proxy to the target of dial. Connection n, counted from 0, meets the
// fault plan(n); a nil plan means no faults. plan is called with a lock held and must not
// call the proxy.
func NewProxy(t testing.TB, dial func() (net.Conn, error), plan func(n int) Fault) *Proxy {
	if plan == nil {
		plan = func(int) Fault { return Fault{} }
	}
	p := &Proxy{dial: dial, plan: plan, done: make(chan struct{}), struck: map[FaultKind]int{}}
	t.Cleanup(p.Close)
	return p
}

// Listen makes the proxy accept TCP connections on loopback and returns its address.
func (p *Proxy) Listen(t testing.TB) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	p.mu.Lock()
	p.listener = l
	p.mu.Unlock()
	p.work.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return // closed
			}
			if p.serve(near) != nil {
				near.Close() // as a client sees it when the target is down
			}
		}
	})
	return l.Addr().String()
}

// Dial returns the near end of a connection in memory, for synctest bubbles.
func (p *Proxy) Dial() (net.Conn, error) {
	near, ours := net.Pipe()
	if err := p.serve(ours); err != nil {
		near.Close()
		return nil, err
	}
	return near, nil
}

// Cut resets all connections at once. It does not count as a fault.
func (p *Proxy) Cut() {
	p.mu.Lock()
	alive := slices.Clone(p.alive)
	p.mu.Unlock()
	for _, c := range alive {
		reset(c.near)
		reset(c.far)
	}
}

// Struck returns the number of connections that met each kind of fault.
func (p *Proxy) Struck() map[FaultKind]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[FaultKind]int{}
	for k, n := range p.struck {
		out[k] = n
	}
	return out
}

// Faults returns the number of connections that met a fault.
func (p *Proxy) Faults() (n int) {
	for _, m := range p.Struck() {
		n += m
	}
	return n
}

// Close closes all connections and waits until the goroutines of the proxy have ended. It
// may be called more than once.
func (p *Proxy) Close() {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		close(p.done)
	}
	for _, c := range p.alive {
		c.releaseLocked()
	}
	l := p.listener
	p.mu.Unlock()
	if l != nil {
		l.Close()
	}
	p.work.Wait()
}

// serve passes one connection on. It owns near if it returns nil.
func (p *Proxy) serve(near net.Conn) error {
	far, err := p.dial()
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		far.Close()
		return fmt.Errorf("the proxy is closed: %w", net.ErrClosed)
	}
	c := &faulty{p: p, near: near, far: far, fault: p.plan(p.count), struck: make(chan struct{}), freed: make(chan struct{})}
	c.left = c.fault.After
	p.count++
	p.alive = append(p.alive, c)
	var pumps sync.WaitGroup
	pumps.Go(func() { c.pass(far, near) })
	pumps.Go(func() { c.pass(near, far) })
	p.work.Go(func() { pumps.Wait(); c.end() })
	return nil
}

// faulty is one connection through the proxy.
type faulty struct {
	p         *Proxy
	near, far net.Conn
	fault     Fault
	freed     chan struct{} // closed when a parked connection ends
	released  bool          // freed is closed; guarded by the proxy's mutex

	mu     sync.Mutex
	left   int64         // bytes that may still pass before the fault
	over   bool          // the fault has happened
	struck chan struct{} // closed when over becomes true
}

// end closes the ends that a fault has left open, and forgets the connection.
func (c *faulty) end() {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.releaseLocked()
	c.p.alive = slices.DeleteFunc(c.p.alive, func(o *faulty) bool { return o == c })
	c.p.parked = slices.DeleteFunc(c.p.parked, func(o *faulty) bool { return o == c })
}

// pass moves bytes one way until the connection ends or the fault comes.
func (c *faulty) pass(dst, src net.Conn) {
	buf := make([]byte, 32<<10)
	if c.fault.Piece > 0 {
		buf = buf[:min(c.fault.Piece, len(buf))]
	}
	for {
		n, err := src.Read(buf)
		if n > 0 && c.wait() {
			n, last := c.take(n)
			if _, werr := dst.Write(buf[:n]); err == nil {
				err = werr
			}
			if last {
				c.strike()
			}
		}
		switch {
		case c.hit() && c.fault.parks():
			c.park()
			return
		case err != nil && !c.hit():
			closeWrite(dst) // pass on the end of the stream
			return
		case err != nil:
			return
		}
	}
}

// wait waits for the pause of a piece. It returns false if the fault has happened: then
// nothing passes any more.
func (c *faulty) wait() bool {
	if c.fault.Pause > 0 {
		pause := time.NewTimer(c.fault.Pause)
		defer pause.Stop()
		select {
		case <-pause.C:
		case <-c.struck:
		case <-c.p.done:
		}
	}
	return !c.hit()
}

func (c *faulty) hit() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over
}

// take returns how many of the next n bytes may pass; last reports that the fault follows
// them.
func (c *faulty) take(n int) (allowed int, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return 0, false
	}
	if c.fault.Kind == NoFault || int64(n) < c.left {
		c.left -= int64(n)
		return n, false
	}
	if c.fault.Kind == MidFrame {
		n = int(c.left)
	}
	c.over = true
	close(c.struck)
	c.p.mu.Lock()
	c.p.struck[c.fault.Kind]++
	c.p.mu.Unlock()
	return n, true
}

// park keeps open the ends that the fault has left open, until the proxy is closed or
// maxParked newer connections are parked. It reads nothing from them, so that buffers
// fill up as they do when a network is gone.
func (c *faulty) park() {
	c.p.mu.Lock()
	if !slices.Contains(c.p.parked, c) {
		c.p.parked = append(c.p.parked, c)
	}
	if len(c.p.parked) > maxParked {
		c.p.parked[0].releaseLocked()
		c.p.parked = c.p.parked[1:]
	}
	c.p.mu.Unlock()
	<-c.freed
}

// releaseLocked closes both ends, which ends the pumps, parked or not. The caller holds
// the proxy's mutex.
func (c *faulty) releaseLocked() {
	if !c.released {
		c.released = true
		close(c.freed)
	}
	c.near.Close()
	c.far.Close()
}
