// Package oneconn serves HTTP on one connection that is there already.
package oneconn

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// Serve serves a connection with a server of its own, which has no other, and whose
// requests get ctx. It returns when the connection or ctx has ended, and closes the
// connection; handlers may still run then.
func Serve(ctx context.Context, s *http.Server, conn net.Conn) {
	s.BaseContext = func(net.Listener) context.Context { return ctx }
	l := &listener{Conn: conn, closed: make(chan struct{})}
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	_ = s.Serve(l) // until the connection has ended
	_ = s.Close()
}

// listener is a connection, and a listener that accepts it once.
type listener struct {
	net.Conn
	accepting sync.Once
	closing   sync.Once
	closed    chan struct{} // closed by Close
}

// Accept implements net.Listener.
func (l *listener) Accept() (conn net.Conn, err error) {
	l.accepting.Do(func() { conn = l })
	if conn != nil {
		return conn, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

// Addr implements net.Listener.
func (l *listener) Addr() net.Addr { return l.LocalAddr() }

// Close implements net.Conn and net.Listener.
func (l *listener) Close() error {
	l.closing.Do(func() { close(l.closed) })
	return l.Conn.Close()
}
