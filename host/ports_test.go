package host_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// serveStreams serves HTTP/2 on each stream.
func serveStreams(t *testing.T, handler http.HandlerFunc) (onStream func(net.Conn)) {
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

func (l streamListener) Accept() (net.Conn, error) {
	c, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (l streamListener) Close() error   { return nil }
func (l streamListener) Addr() net.Addr { return &net.TCPAddr{} }

// portsMachine connects a machine that takes requests for lent ports.
func portsMachine(t *testing.T, h *host.Host, id string, handler http.HandlerFunc) *client.Conn {
	t.Helper()
	near, far := testkit.Channels()
	served := make(chan struct{})
	go func() { defer close(served); _ = h.ServeChannel(context.Background(), far) }()
	o := client.Options{ClientID: id, Meta: ahp.ClientMarker{Ports: true}.Meta(), OnStream: serveStreams(t, handler)}
	c := must.Get(client.ConnectChannel(t.Context(), near, o))(t)
	t.Cleanup(func() { c.Close(); <-served })
	return c
}

// askPort asks the machine for a path.
func askPort(t *testing.T, h *host.Host, id, path string) (*http.Response, error) {
	t.Helper()
	way, err := h.Ports(id)
	if err != nil {
		return nil, err
	}
	return way.RoundTrip(must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, "http://machine"+path, nil))(t))
}

// A request goes to the machine on its connection, one after the other on one stream, and
// the end of the connection ends the answer.
func TestRequestsGoToTheMachine(t *testing.T) {
	h := host.New(host.Options{})
	defer h.Close()
	c := portsMachine(t, h, "laptop", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "this is "+r.URL.Path)
		if r.URL.Path == "/endless" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}
	})
	for _, path := range []string{"/a", "/b"} {
		a := must.Get(askPort(t, h, "laptop", path))(t)
		if got := string(must.Get(io.ReadAll(a.Body))(t)); got != "this is "+path || a.ProtoMajor != 2 {
			t.Errorf("%s: %q by %s", path, got, a.Proto)
		}
	}
	endless := must.Get(askPort(t, h, "laptop", "/endless"))(t)
	must.Get(io.ReadFull(endless.Body, make([]byte, 16)))(t)
	began := time.Now()
	c.Close()
	if _, err := endless.Body.Read(make([]byte, 10)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("the answer ended with %v after its connection", err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the answer ended after %v", took)
	}
	if _, err := askPort(t, h, "laptop", "/c"); err == nil {
		t.Error("a machine that is away answers")
	}
}

// A machine whose marker does not say so gets no requests, and nothing is sent to it.
func TestRequestsNeedTheMarker(t *testing.T) {
	h := host.New(host.Options{})
	defer h.Close()
	near, far := testkit.Channels()
	served := make(chan struct{})
	go func() { defer close(served); _ = h.ServeChannel(context.Background(), far) }()
	c := must.Get(client.ConnectChannel(t.Context(), near, client.Options{ClientID: "old", Meta: ahp.NewClientMeta()}))(t)
	if _, err := askPort(t, h, "old", "/"); err == nil {
		t.Error("a machine without the marker is asked")
	}
	must.Do(t, c.Ping(t.Context()))
	c.Close()
	<-served
}
