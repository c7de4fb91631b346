package host_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tether/ahp"
	"tether/host"
	"tether/host/rights"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc/wsconn"
)

// ends are the connections of clients that have ended, as a host's record has them.
type ends struct {
	mu sync.Mutex
	of map[string]time.Time // by clientId
}

func (e *ends) audit(ev rights.AuditEvent) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if ev.Type == rights.AuditEnded {
		e.of[ev.Client] = time.Now()
	}
}

func (e *ends) at(id string) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.of[id]
}

// via connects a client over WebSockets in memory.
func via(t *testing.T, id string, dial func() (net.Conn, error)) *viewer {
	t.Helper()
	ch := must.Get(wsconn.Dial(t.Context(), "ws://localhost/", wsconn.Options{DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() }}))(t)
	v := newViewer(t, ch, id)
	t.Cleanup(v.close)
	v.initialize(viewOptions{resume: true, subs: []string{ahp.RootURI}})
	return v
}

// A machine behind a network that is gone silently is noticed within twice the time of
// silence, its resources are freed, and it may return. A merely quiet one stays.
func TestASilentMachineIsNoticed(t *testing.T) {
	for _, kind := range []testkit.FaultKind{testkit.BlackHole, testkit.HalfOpenFar} {
		synctest.Test(t, func(t *testing.T) {
			ended := &ends{of: map[string]time.Time{}}
			h := testHost(t, host.Options{Grace: 10 * time.Second, Audit: ended.audit})
			l := testkit.NewPipes()
			server := &http.Server{Handler: h}
			go func() { _ = server.Serve(l) }() // until it is closed
			t.Cleanup(func() { server.Close() })
			proxy := testkit.NewProxy(t, l.Dial, func(int) testkit.Fault { return testkit.Fault{Kind: kind, After: 5000} })
			quiet := via(t, "quiet", l.Dial)
			machine := via(t, "laptop", proxy.Dial)
			machine.create(uri)
			for proxy.Faults() == 0 {
				machine.output(uri, "x", -1)
				synctest.Wait()
			}
			began := time.Now()
			time.Sleep(59 * time.Second)
			if at := ended.at("laptop"); kind == testkit.BlackHole && !at.IsZero() && at.Sub(began) < 30*time.Second {
				t.Error("it was given up before it was asked")
			}
			time.Sleep(2 * time.Second)
			if at := ended.at("laptop"); at.IsZero() {
				t.Errorf("%v: not noticed within 61 s", kind)
			}
			time.Sleep(10 * time.Second)
			quiet.await("the terminal has gone", func() bool { return len(quiet.root.Terminals) == 0 })
			if n := h.Count(); n != 0 {
				t.Errorf("%d terminals are left", n)
			}
			time.Sleep(time.Hour)
			quiet.ping()
			if at := ended.at("quiet"); !at.IsZero() {
				t.Errorf("who was quiet for an hour was closed after %v", at.Sub(began))
			}
			via(t, "laptop", l.Dial).create(uri)
			quiet.await("the terminal is back", func() bool { return len(quiet.root.Terminals) == 1 })
		})
	}
}

// The same with sockets: nothing that the host sends gets anywhere, and nothing comes.
// Neither end of the connection is told.
func TestASilentSocketIsNoticed(t *testing.T) {
	testkit.Leaks(t)
	ended := &ends{of: map[string]time.Time{}}
	_, url := serve(t, host.Options{SilenceTime: 100 * time.Millisecond, HandshakeTime: time.Hour, Audit: ended.audit})
	address := strings.TrimPrefix(url, "ws://")
	p := testkit.NewProxy(t, func() (net.Conn, error) { return net.Dial("tcp", address) },
		func(int) testkit.Fault { return testkit.Fault{Kind: testkit.BlackHole} })
	c := must.Get(net.Dial("tcp", p.Listen(t)))(t)
	defer c.Close()
	must.Get(io.WriteString(c, "GET / HTTP/1.1\r\nHost: "+address+"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"))(t)
	testkit.Eventually(t, testkit.Patience, "the host notices", func() bool { return !ended.at("").IsZero() })
}
