package uplink_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/agent/term"
	"tether/agent/uplink"
	"tether/ahp"
	"tether/internal/testkit/must"
)

func keepsPorts() ahp.Meta {
	return ahp.ClientTerminals{Version: ahp.ExtensionVersion, CommandActions: true, Ports: true}.Meta() // without resume, which the fake lacks
}

// stream begins a stream to the machine.
func (f *fakeHost) stream(t *testing.T) net.Conn {
	t.Helper()
	f.mu.Lock()
	peer := f.peer
	f.mu.Unlock()
	c := must.Get(peer.Stream())(t)
	f.open = c
	return c
}

// closeStream closes the stream that was begun last.
func (f *fakeHost) closeStream() { _ = f.open.Close() }

// ports returns the way to the machine's ports.
func (f *fakeHost) ports(t *testing.T) *http.ClientConn {
	t.Helper()
	stream := f.stream(t)
	tr := &http.Transport{Protocols: new(http.Protocols), DialContext: func(context.Context, string, string) (net.Conn, error) { return stream, nil }}
	tr.Protocols.SetUnencryptedHTTP2(true)
	c := must.Get(tr.NewClientConn(t.Context(), "http", "machine:80"))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// portRequest is a request for a port of a terminal.
func portRequest(t *testing.T, uri, path string, body io.Reader) *http.Request {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://machine"+path, body))(t)
	r.Header.Set(ahp.PortsTerminal, uri)
	r.Header.Set(ahp.PortsPort, "3000")
	return r
}

// A host's request for a lent port comes with its terminal; both bodies flow at once. A
// terminal that is not lent there does not exist.
func TestAHostAsksForAPort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient, marker: keepsPorts()}
		w := fakeWorld(t, f, func(o *uplink.Options) {
			o.Ports = func(w http.ResponseWriter, r *http.Request, id term.ID) {
				fmt.Fprintf(w, "%s %s\n", id, r.URL.Path)
				_ = http.NewResponseController(w).Flush()
				_, _ = io.Copy(w, r.Body)
			}
		})
		h, _ := w.spawn(term.Spec{})
		pass(time.Second)
		c := f.ports(t)
		in, feed := io.Pipe()
		a := must.Get(c.RoundTrip(portRequest(t, f.uri(t), "/page", in)))(t)
		first := make([]byte, len(h.ID())+7)
		must.Get(io.ReadFull(a.Body, first))(t)
		if want := string(h.ID()) + " /page\n"; string(first) != want {
			t.Errorf("the answer begins with %q, want %q", first, want)
		}
		must.Get(io.WriteString(feed, "and the body"))(t)
		must.Do(t, feed.Close())
		if rest := must.Get(io.ReadAll(a.Body))(t); string(rest) != "and the body" {
			t.Errorf("then came %q", rest)
		}
		a = must.Get(c.RoundTrip(portRequest(t, "ahp-terminal:/another", "/", strings.NewReader("x"))))(t)
		if got := a.Header.Get(ahp.PortsError); a.StatusCode != http.StatusNotFound || got != "no such terminal" {
			t.Errorf("another terminal: %d, %q", a.StatusCode, got)
		}
	})
}

// A port whose server hangs has room for so many requests, and other ports have their
// own.
func TestRequestsForAPortAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeHost{target: ahp.TargetClient, marker: keepsPorts()}
		w := fakeWorld(t, f, func(o *uplink.Options) {
			o.Ports = func(_ http.ResponseWriter, r *http.Request, _ term.ID) {
				if r.URL.Path == "/hang" {
					<-r.Context().Done()
				}
			}
		})
		w.spawn(term.Spec{})
		pass(time.Second)
		c := f.ports(t)
		ask := func(ctx context.Context, path, port string) int {
			r := portRequest(t, f.uri(t), path, nil).WithContext(ctx)
			r.Header.Set(ahp.PortsPort, port)
			a, err := c.RoundTrip(r)
			if err != nil {
				return 0
			}
			a.Body.Close()
			return a.StatusCode
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan int)
		for range 64 {
			go func() { ended <- ask(ctx, "/hang", "3000") }()
		}
		synctest.Wait()
		if one, other := ask(t.Context(), "/", "3000"), ask(t.Context(), "/", "3001"); one != http.StatusServiceUnavailable || other != http.StatusOK {
			t.Errorf("the 65th request: %d; for another port: %d", one, other)
		}
		cancel()
		for range 64 {
			<-ended
		}
		pass(time.Second)
		if got := ask(t.Context(), "/", "3000"); got != http.StatusOK {
			t.Errorf("afterwards: %d", got)
		}
	})
}
