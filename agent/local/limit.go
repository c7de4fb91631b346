package local

import (
	"net"
	"sync"
)

// maxConns bounds the connections that are open at once. Every attached terminal is one.
const maxConns = 512

// limited is a listener that accepts no more while max connections are open: the others wait in the socket's backlog.
type limited struct {
	net.Listener
	slots chan struct{}
	done  chan struct{} // closed by Close
	once  sync.Once
}

func newLimited(l net.Listener, max int) *limited {
	return &limited{Listener: l, slots: make(chan struct{}, max), done: make(chan struct{})}
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.done:
		return nil, net.ErrClosed
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &counted{Conn: conn, leave: sync.OnceFunc(func() { <-l.slots })}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.done) })
	return l.Listener.Close()
}

// counted gives its slot back when it is closed.
type counted struct {
	net.Conn
	leave func()
}

func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
