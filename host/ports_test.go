package host_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"tether/ahp"
	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
)

// serveStreams serves HTTP/2 on each stream.
func serveStreams(t *testing.T, handler http.HandlerFunc) (onStream func(net.Conn)) {
	return testkit.ServeStreams(t, handler)
}

// portsMachine connects a machine that takes requests for lent ports.
func portsMachine(t *testing.T, h *host.Host, id string, handler http.HandlerFunc) *client.Conn {
	t.Helper()
	return portsMachineOf(t, h, id, serveStreams(t, handler))
}

func portsMachineOf(t *testing.T, h *host.Host, id string, onStream func(net.Conn)) *client.Conn {
	t.Helper()
	near, far := testkit.Channels()
	served := make(chan struct{})
	go func() { defer close(served); _ = h.ServeChannel(context.Background(), far) }()
	o := client.Options{ClientID: id, Meta: ahp.ClientMarker{Ports: true}.Meta(), OnStream: onStream}
	c := must.Get(client.ConnectChannel(t.Context(), near, o))(t)
	t.Cleanup(func() { c.Close(); <-served })
	return c
}

// askPort asks the machine for a path.
func askPort(t *testing.T, h *host.Host, id, path string) (*http.Response, error) {
	t.Helper()
	return askPortIn(t.Context(), t, h, id, path)
}

func askPortIn(ctx context.Context, t *testing.T, h *host.Host, id, path string) (*http.Response, error) {
	t.Helper()
	way, err := h.MachinePorts(id)
	if err != nil {
		return nil, err
	}
	return way.RoundTrip(must.Get(http.NewRequestWithContext(ctx, http.MethodGet, "http://machine"+path, nil))(t))
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

// Answers that nobody reads end when they would keep the others waiting.
func TestAnswersThatNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(host.Options{})
		portsMachine(t, h, "laptop", func(w http.ResponseWriter, r *http.Request) {
			for r.URL.Path == "/endless" {
				if _, err := w.Write(make([]byte, 32<<10)); err != nil {
					return
				}
			}
			_, _ = io.WriteString(w, "small")
		})
		var stalled []*http.Response
		for range 8 {
			stalled = append(stalled, must.Get(askPort(t, h, "laptop", "/endless"))(t))
		}
		asked := time.Now()
		a := must.Get(askPort(t, h, "laptop", "/small"))(t)
		if got := must.Get(io.ReadAll(a.Body))(t); string(got) != "small" || time.Since(asked) > 20*time.Second {
			t.Errorf("an answer beside them came after %v: %q", time.Since(asked), got)
		}
		time.Sleep(time.Minute)
		ended := 0
		for _, a := range stalled {
			if _, err := io.CopyN(io.Discard, a.Body, 8<<20); err != nil {
				ended++
			}
			_ = a.Body.Close()
		}
		if ended != 6 {
			t.Errorf("%d of 8 answers ended, want all but 2", ended)
		}
		h.Close()
	})
}

// The stream ends when nothing was asked for a while, and begins again.
func TestTheStreamEndsWhenNothingIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(host.Options{})
		var streams []*watchedStream
		serve := serveStreams(t, func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})
		portsMachineOf(t, h, "laptop", func(c net.Conn) {
			s := &watchedStream{Conn: c}
			streams = append(streams, s)
			serve(s)
		})
		for n := range 2 {
			a := must.Get(askPort(t, h, "laptop", "/"))(t)
			time.Sleep(time.Hour)
			if len(streams) != n+1 || streams[n].closed.Load() {
				t.Fatalf("there are %d streams, the last one closed: %t", len(streams), streams[n].closed.Load())
			}
			_ = a.Body.Close()
			time.Sleep(2 * time.Minute)
			if !streams[n].closed.Load() {
				t.Error("the stream is open although nothing is asked")
			}
		}
		h.Close()
	})
}

type watchedStream struct {
	net.Conn
	closed atomic.Bool
}

func (s *watchedStream) Close() error {
	s.closed.Store(true)
	return s.Conn.Close()
}

// A machine that does not speak HTTP/2 loses its stream, one that sends what it may not
// loses its connection. Nobody waits longer than asked.
func TestHostileMachines(t *testing.T) {
	for name, attack := range map[string]func(net.Conn){
		"garbage":       func(c net.Conn) { _, _ = io.WriteString(c, strings.Repeat("HTTP/1.1 200 OK\r\n\r\n", 100)) },
		"an end":        func(c net.Conn) { _ = c.Close() },
		"nothing":       func(net.Conn) {},
		"endless bytes": func(c net.Conn) { _, _ = io.Copy(c, endless{}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := host.New(host.Options{})
				var done sync.WaitGroup
				hostile := true
				serve := serveStreams(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "well") })
				c := portsMachineOf(t, h, "laptop", func(c net.Conn) {
					if !hostile {
						serve(c)
						return
					}
					done.Go(func() { attack(c) })
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := askPortIn(ctx, t, h, "laptop", "/"); err == nil {
					t.Error("there was an answer")
				}
				must.Do(t, c.Ping(t.Context()))
				if name == "nothing" { // the stream is open, as with a machine that is slow
					h.Close()
					return
				}
				hostile = false
				a := must.Get(askPort(t, h, "laptop", "/"))(t)
				if got := must.Get(io.ReadAll(a.Body))(t); string(got) != "well" {
					t.Errorf("the next stream: %q", got)
				}
				h.Close()
				done.Wait()
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		h := host.New(host.Options{})
		c := portsMachine(t, h, "laptop", func(http.ResponseWriter, *http.Request) {})
		_, _ = io.WriteString(must.Get(c.Peer().Stream())(t), "HTTP/2")
		<-c.Done()
		h.Close()
	})
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

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
