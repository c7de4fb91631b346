package uplink_test

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/internal/testkit/must"
	"tether/jsonrpc"
)

// frames writes HTTP/2 frames by hand.
type frames struct {
	*http2.Framer
	conn net.Conn
}

func newFrames(t *testing.T, conn net.Conn) *frames {
	t.Helper()
	must.Get(io.WriteString(conn, http2.ClientPreface))(t)
	f := &frames{http2.NewFramer(conn, conn), conn}
	must.Do(t, f.WriteSettings())
	return f
}

// headers returns the header block of a request.
func headers(uri string, more ...string) []byte {
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "machine"}, {":path", "/"},
		{strings.ToLower(ahp.PortsTerminal), uri}, {strings.ToLower(ahp.PortsPort), "3000"}} {
		_ = e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	for i, value := range more {
		_ = e.WriteField(hpack.HeaderField{Name: fmt.Sprint("x-", i), Value: value})
	}
	return block.Bytes()
}

// drain reads what the machine answers until the stream ends, at most for a minute.
func (f *frames) drain() (ended bool) {
	done := make(chan struct{})
	go func() { defer close(done); _, _ = io.Copy(io.Discard, f.conn) }()
	select {
	case <-done:
		return true
	case <-time.After(time.Minute):
		return false
	}
}

// A host that attacks the machine by its stream harms only the stream: terminals go on,
// what runs at a time is bounded, and the next stream works.
func TestHostileStreams(t *testing.T) {
	for name, attack := range map[string]func(t *testing.T, conn net.Conn, uri string){
		"no HTTP/2": func(t *testing.T, conn net.Conn, _ string) {
			_, _ = io.WriteString(conn, strings.Repeat("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 1000))
		},
		"nothing": func(t *testing.T, conn net.Conn, _ string) { _, _ = io.WriteString(conn, "PRI") },
		"frames that are none": func(t *testing.T, conn net.Conn, _ string) {
			f := newFrames(t, conn)
			_, _ = conn.Write(bytes.Repeat([]byte{0xff}, 100_000))
			if !f.drain() {
				t.Error("the stream did not end")
			}
		},
		"endless fields": func(t *testing.T, conn net.Conn, uri string) {
			f := newFrames(t, conn)
			block := headers(uri, strings.Repeat("x", 10_000))
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block})
			for range 20_000 {
				if f.WriteContinuation(1, false, bytes.Repeat([]byte{0, 1, 'x', 1, 'y'}, 1000)) != nil {
					break
				}
			}
			if !f.drain() {
				t.Error("the stream did not end")
			}
		},
		"a bomb of indexed fields": func(t *testing.T, conn net.Conn, uri string) {
			f := newFrames(t, conn)
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: append(headers(uri, strings.Repeat("x", 3000)), bytes.Repeat([]byte{0xbe}, 16_000-4000)...), EndHeaders: true, EndStream: true})
			go f.drain()
			pass(time.Second)
			_ = conn.Close()
		},
		"10,000 requests": func(t *testing.T, conn net.Conn, uri string) {
			f := newFrames(t, conn)
			go f.drain()
			for i := range uint32(10_000) {
				if f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: headers(uri), EndHeaders: true, EndStream: true}) != nil {
					break
				}
			}
			pass(time.Second)
			_ = conn.Close()
		},
		"requests taken back": func(t *testing.T, conn net.Conn, uri string) {
			f := newFrames(t, conn)
			go f.drain()
			for i := range uint32(10_000) {
				if f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*i + 1, BlockFragment: headers(uri), EndHeaders: true, EndStream: true}) != nil ||
					f.WriteRSTStream(2*i+1, http2.ErrCodeCancel) != nil {
					break
				}
			}
			pass(time.Second)
			_ = conn.Close()
		},
		"pings and settings": func(t *testing.T, conn net.Conn, _ string) {
			f := newFrames(t, conn)
			for range 100_000 { // nobody reads the answers
				if f.WritePing(false, [8]byte{}) != nil || f.WriteSettings() != nil {
					break
				}
			}
			_ = conn.Close()
		},
		"a body without end": func(t *testing.T, conn net.Conn, uri string) {
			f := newFrames(t, conn)
			go f.drain()
			_ = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: headers(uri), EndHeaders: true})
			for range 1000 { // more than its window
				if f.WriteData(1, false, make([]byte, 16<<10)) != nil {
					break
				}
			}
			_ = conn.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeHost{target: ahp.TargetClient, marker: keepsPorts()}
				var running, most atomic.Int64
				w := fakeWorld(t, f, func(o *uplink.Options) {
					o.Ports = func(w http.ResponseWriter, r *http.Request, _ term.ID) {
						n := running.Add(1)
						defer running.Add(-1)
						for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
						}
						if r.URL.Path == "/" {
							<-r.Context().Done() // and the body stays unread
							return
						}
						_, _ = io.WriteString(w, "served")
					}
				})
				_, child := w.spawn(term.Spec{})
				pass(time.Second)
				uri := f.uri(t)
				attack(t, f.stream(t), uri)
				child.Print("still here")
				pass(time.Second)
				locked(&f.mu, func() {
					if f.text[uri] != "still here" || len(f.created) != 1 {
						t.Errorf("the terminal shows %q, of %d", f.text[uri], len(f.created))
					}
				})
				if n := most.Load(); n > 64 {
					t.Errorf("%d requests for one port ran at a time", n)
				}
				f.closeStream()
				pass(time.Second)
				if n := running.Load(); n != 0 {
					t.Errorf("%d requests run after their stream has ended", n)
				}
				a := must.Get(f.ports(t).RoundTrip(portRequest(t, uri, "/again", nil)))(t)
				if got := must.Get(io.ReadAll(a.Body))(t); string(got) != "served" {
					t.Errorf("the next stream: %d, %q", a.StatusCode, got)
				}
			})
		})
	}
}

// A host that begins a stream although its marker does not say so loses the connection.
func TestAStreamNeedsBothMarkers(t *testing.T) {
	serves := func(o *uplink.Options) { o.Ports = func(http.ResponseWriter, *http.Request, term.ID) {} }
	for name, c := range map[string]struct {
		marker ahp.Meta
		change func(*uplink.Options)
		want   string
	}{
		"the host's":    {ahp.NewClientTerminals(30_000).Meta(), serves, "its marker does not say"},
		"the machine's": {keepsPorts(), nil, "binary message"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fakeHost{target: ahp.TargetClient, marker: c.marker}
				w := fakeWorld(t, f, c.change)
				w.until(uplink.StateOnline, time.Minute)
				_, _ = io.WriteString(f.stream(t), "PRI")
				synctest.Wait()
				if s := w.link.Status(); s.State == uplink.StateOnline || s.Err == nil || !strings.Contains(s.Err.Error(), c.want) {
					t.Errorf("the link is %s, %v", s.State, s.Err)
				}
			})
		})
	}
}

// The end of the connection ends the requests on it at once, and the link waits for them.
func TestRequestsEndWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient, marker: keepsPorts()}
		var ended atomic.Int64
		w := fakeWorld(t, f, func(o *uplink.Options) {
			o.Ports = func(w http.ResponseWriter, r *http.Request, _ term.ID) {
				_ = http.NewResponseController(w).Flush()
				<-r.Context().Done()
				ended.Add(1)
			}
		})
		w.spawn(term.Spec{})
		pass(time.Second)
		c := f.ports(t)
		a := must.Get(c.RoundTrip(portRequest(t, f.uri(t), "/", nil)))(t)
		w.cut(true)
		synctest.Wait()
		if ended.Load() != 1 {
			t.Error("the request runs on")
		}
		if _, err := a.Body.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), jsonrpc.ErrClosed.Error()) {
			t.Errorf("the answer ended with %v", err)
		}
	})
}
