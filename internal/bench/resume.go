package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// cutFor is how long a connection stays cut: long enough for some output to wait.
const cutFor = 200 * time.Millisecond

// ticking is a program that prints all the time.
var ticking = []string{"sh", "-c", "while :; do echo tick; sleep 0.01; done"}

// resumePart measures how long the observer waits for output after a cut, from the moment when the network is usable again, which includes the
// daemon's pause before it dials, and from the daemon's new connection. Each cut is the first of its daemon, because pauses grow.
func resumePart(ctx context.Context, s settings) ([]row, error) {
	var whole, linked []float64
	for range s.cuts {
		r, err := resumeOnce(ctx, s.programs)
		if err != nil {
			return nil, err
		}
		whole, linked = append(whole, millis(r.seen.Sub(r.mended))), append(linked, millis(r.seen.Sub(r.connected)))
	}
	return append(quantiles("resume after a cut", "from a usable network to new output", whole),
		quantiles("resume after a cut", "from the new connection to new output", linked)...), nil
}

// resumption has the times at which the network was usable again, the daemon had a new connection, and the observer got new output.
type resumption struct{ mended, connected, seen time.Time }

func resumeOnce(ctx context.Context, p programs) (resumption, error) {
	var link relay
	defer link.close()
	p.between = link.to
	r, err := newRig(ctx, p)
	if err != nil {
		return resumption{}, err
	}
	defer r.close()
	_, uri, err := r.start(ctx, ticking...)
	if err != nil {
		return resumption{}, err
	}
	var seen atomic.Pointer[time.Time] // of the first output since it was set to nil
	o, err := r.watch(ctx, uri, func([]byte) {
		now := time.Now()
		seen.CompareAndSwap(nil, &now)
	})
	if err != nil {
		return resumption{}, err
	}
	defer o.close()
	// Wait until the daemon knows that the host has the terminal. After an earlier cut it would create the terminal anew, and the observed one
	// would end.
	if _, err := poll(ctx, func() (bool, error) {
		s, err := r.door.Status(ctx)
		if err == nil && !s.Hosts[0].Lent[0].There {
			err = errNotYet
		}
		return true, err
	}); err != nil {
		return resumption{}, err
	}
	link.cut()
	if err := sleep(ctx, cutFor); err != nil {
		return resumption{}, err
	}
	seen.Store(nil)
	mended := time.Now()
	link.mend()
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	first, err := poll(ctx, func() (*time.Time, error) {
		if at := seen.Load(); at != nil {
			return at, nil
		}
		return nil, errNotYet
	})
	if err != nil {
		return resumption{}, err
	}
	return resumption{mended, link.connected(), *first}, o.problem()
}

// relay passes connections on to a host and can cut them all. The zero value passes nothing until to is called.
type relay struct {
	listener net.Listener
	target   string
	work     sync.WaitGroup

	mu    sync.Mutex
	down  bool
	since time.Time // of the first connection, or the first one after mend; zero before it
	conns []net.Conn
}

// to listens on loopback for the host at address, a WebSocket URL, and returns the URL to use instead.
func (l *relay) to(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	if l.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return "", err
	}
	l.target, u.Host = u.Host, l.listener.Addr().String()
	l.work.Go(l.accept)
	return u.String(), nil
}

func (l *relay) accept() {
	for {
		near, err := l.listener.Accept()
		if err != nil {
			return // closed
		}
		if far, err := l.admit(near); err != nil {
			near.Close()
		} else {
			l.work.Go(func() { _, _ = io.Copy(far, near); far.Close() })
			l.work.Go(func() { _, _ = io.Copy(near, far); near.Close() })
		}
	}
}

// admit connects near with the host, unless the link is cut.
func (l *relay) admit(near net.Conn) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.down {
		return nil, fmt.Errorf("the link is cut")
	}
	far, err := net.Dial("tcp", l.target)
	if err != nil {
		return nil, err
	}
	if l.since.IsZero() {
		l.since = time.Now()
	}
	l.conns = append(l.conns, near, far)
	return far, nil
}

func (l *relay) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = true
	for _, c := range l.conns {
		c.Close()
	}
	l.conns = nil
}

func (l *relay) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down, l.since = false, time.Time{}
}

// connected returns the time of the first connection since mend.
func (l *relay) connected() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.since
}

func (l *relay) close() {
	if l.listener != nil {
		l.listener.Close()
	}
	l.cut()
	l.work.Wait()
}
