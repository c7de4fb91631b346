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
	streams := NewPipes()
	s := &http.Server{Handler: handler, Protocols: new(http.Protocols)}
	s.Protocols.SetUnencryptedHTTP2(true)
	ended := make(chan struct{})
	go func() { defer close(ended); _ = s.Serve(streams) }()
	t.Cleanup(func() { _ = s.Close(); <-ended })
	return func(c net.Conn) {
		if streams.Give(c) != nil {
			_ = c.Close()
		}
	}
}
