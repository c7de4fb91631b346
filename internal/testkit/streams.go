package testkit

import (
	"net"
	"net/http"
	"testing"
)

// ServeStreams serves HTTP/2 on the streams that it is given, as a machine does on those
// of its link, until the test ends.
func ServeStreams(t testing.TB, handler http.Handler) (onStream func(net.Conn)) {
	t.Helper()
	streams := make(streamListener, 4)
	s := &http.Server{Handler: handler, Protocols: new(http.Protocols)}
	s.Protocols.SetUnencryptedHTTP2(true)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(streams) }()
	t.Cleanup(func() { close(streams); _ = s.Close(); <-ended })
	return func(c net.Conn) { streams <- c }
}

type streamListener chan net.Conn

// Accept implements net.Listener.
func (l streamListener) Accept() (net.Conn, error) {
	c, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}

// Close implements net.Listener.
func (l streamListener) Close() error { return nil }

// Addr implements net.Listener.
func (l streamListener) Addr() net.Addr { return &net.TCPAddr{} }
