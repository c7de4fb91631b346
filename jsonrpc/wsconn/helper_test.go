package wsconn_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
	"tether/jsonrpc/wsconn"
)

var (
	_ jsonrpc.Channel      = (*wsconn.Conn)(nil)
	_ jsonrpc.ReasonCloser = (*wsconn.Conn)(nil)
	_ jsonrpc.BatchSender  = (*wsconn.Conn)(nil)
)

// serve starts a server on loopback that accepts with o, and returns its URL and the
// connections it accepted.
func serve(t testing.TB, o wsconn.Options) (url string, accepted <-chan *wsconn.Conn) {
	t.Helper()
	conns := make(chan *wsconn.Conn, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, err := wsconn.Accept(w, r, o); err == nil {
			conns <- c
		}
	}))
	t.Cleanup(s.Close)
	return "ws" + strings.TrimPrefix(s.URL, "http"), conns
}

// connect returns both ends of a connection over loopback TCP.
func connect(t testing.TB, clientOptions, serverOptions wsconn.Options) (client, server *wsconn.Conn) {
	t.Helper()
	url, accepted := serve(t, serverOptions)
	client = must.Get(wsconn.Dial(t.Context(), url, clientOptions))(t)
	server = <-accepted
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return client, server
}

// pipe returns both ends of a connection over net.Pipe, for synctest bubbles. The two
// net.Conns are below them.
func pipe(t testing.TB, o wsconn.Options) (client, server *wsconn.Conn, below [2]net.Conn) {
	t.Helper()
	below[0], below[1] = net.Pipe()
	accepted := make(chan *wsconn.Conn, 1)
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := wsconn.Accept(w, r, o)
		check.OK(t, err)
		accepted <- c
	})}
	l := &oneConn{conns: make(chan net.Conn, 1)}
	l.conns <- below[1]
	close(l.conns)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()

	o.DialContext = func(context.Context, string, string) (net.Conn, error) { return below[0], nil }
	client = must.Get(wsconn.Dial(t.Context(), "ws://pipe/", o))(t)
	server = <-accepted
	<-served
	t.Cleanup(func() {
		client.Close()
		server.Close()
	})
	return client, server, below
}

// oneConn is a listener that ends after the connections it was given.
type oneConn struct{ conns chan net.Conn }

func (l *oneConn) Accept() (net.Conn, error) {
	if c, ok := <-l.conns; ok {
		return c, nil
	}
	return nil, errors.New("no more connections")
}
func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
