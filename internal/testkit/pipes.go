package testkit

import (
	"net"
	"sync"
	"testing"
)

// Pipes is a net.Listener in memory, for synctest bubbles. Its methods may be called from
// any goroutine.
type Pipes struct {
	conns chan net.Conn
	done  chan struct{} // closed by Close
	once  sync.Once
}

// NewPipes returns a listener without connections.
func NewPipes() *Pipes { return &Pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

// Dial blocks until the connection is accepted, and fails once the listener is closed.
func (p *Pipes) Dial() (net.Conn, error) {
	near, far := net.Pipe()
	if err := p.Give(far); err != nil {
		return nil, err
	}
	return near, nil
}

// Give blocks until the connection is accepted, and fails once the listener is closed.
func (p *Pipes) Give(c net.Conn) error {
	select {
	case p.conns <- c:
		return nil
	case <-p.done:
		return net.ErrClosed
	}
}

// Accept implements net.Listener.
func (p *Pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. Existing connections stay open.
func (p *Pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

// Addr implements net.Listener.
func (p *Pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// Connect dials l, which listens on TCP, and returns both ends of the connection. The
// test's cleanup closes them.
func Connect(t testing.TB, l net.Listener) (dialled, accepted net.Conn) {
	t.Helper()
	dialled, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close() })
	if accepted, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { accepted.Close() })
	return dialled, accepted
}
