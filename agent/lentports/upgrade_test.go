package lentports_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"tether/agent/lentports"
	"tether/ahp"
	"tether/internal/testkit/check"
	"tether/internal/testkit/must"
	"tether/vocab"
)

const switching = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n"

// opened is a WebSocket as a host has it.
type opened struct {
	to   *io.PipeWriter
	resp *http.Response
}

func (w *world) open() opened {
	w.t.Helper()
	in, to := io.Pipe()
	r := w.request("GET", "/hot", in, ahp.PortsUpgrade, "websocket", "Origin", "http://localhost:3000", "Sec-Websocket-Key", "k")
	return opened{to, must.Get(w.link.RoundTrip(r))(w.t)}
}

func (o opened) says(t *testing.T, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := io.ReadFull(o.resp.Body, got); err != nil || string(got) != want {
		t.Errorf("%q, %v; want %q", got[:n], err, want)
	}
}

// A connection that the server upgrades carries bytes both ways until either side ends
// it, or the lending.
func TestWebSockets(t *testing.T) {
	var gone chan struct{}
	echo := func(conn net.Conn, in *bufio.Reader) {
		if h := head(in); !strings.Contains(h, "Connection: Upgrade\r\n") || !strings.Contains(h, "Upgrade: websocket\r\n") || !strings.Contains(h, "Sec-Websocket-Key: k\r\n") || strings.Contains(h, "Tether") || strings.Contains(h, "Content-Length") || strings.Contains(h, "chunked") {
			t.Errorf("the server gets %q", h)
		}
		_, _ = io.WriteString(conn, switching+"first")
		for {
			line, err := in.ReadString('\n')
			if err != nil || line == "end\n" {
				break
			}
			_, _ = io.WriteString(conn, "you: "+line)
		}
		close(gone)
	}
	for name, c := range map[string]struct {
		end  func(w *world, o opened) error
		want error
	}{
		"the browser": {func(_ *world, o opened) error { return o.to.Close() }, io.EOF},
		"the server":  {func(_ *world, o opened) error { _, err := io.WriteString(o.to, "end\n"); return err }, io.EOF},
		"the lending": {func(w *world, _ opened) error { return w.h.DropPorts("lab", 3000) }, nil},
		"the link":    {func(_ *world, o opened) error { return o.resp.Body.Close() }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, lentports.Options{}, vocab.LentPort{}, func(t *testing.T, w *world) {
				gone, w.serve = make(chan struct{}), echo
				o := w.open()
				if o.resp.StatusCode != 200 || o.resp.Header.Get(ahp.PortsUpgrade) != "websocket" || o.resp.Header.Get("Sec-Websocket-Accept") != "x" || o.resp.Header.Get("Upgrade") != "" {
					t.Errorf("%s %v", o.resp.Status, o.resp.Header)
				}
				o.says(t, "first")
				for _, line := range []string{"a\n", "b\n"} {
					must.Get(io.WriteString(o.to, line))(t)
					o.says(t, "you: "+line)
				}
				check.OK(t, c.end(w, o))
				synctest.Wait() // no time passes
				select {
				case <-gone:
				default:
					t.Error("the connection to the server is open")
				}
				if n, err := o.resp.Body.Read(make([]byte, 1)); n != 0 || err == nil || c.want != nil && err != c.want || c.want == nil && err == io.EOF {
					t.Errorf("the host reads %d, %v", n, err)
				}
				o.to.Close()
			})
		})
	}
}

// What a server sends without end waits for who reads it, and a server that does not
// agree is not upgraded.
func TestWebSocketsAreBounded(t *testing.T) {
	run(t, lentports.Options{}, vocab.LentPort{}, func(t *testing.T, w *world) {
		sent := 0
		w.serve = func(conn net.Conn, in *bufio.Reader) {
			head(in)
			_, err := io.WriteString(conn, switching)
			for n := 0; err == nil; sent += n {
				n, err = conn.Write(make([]byte, 64<<10))
			}
		}
		o := w.open()
		synctest.Wait()
		if sent > 20<<20 {
			t.Errorf("%d bytes have left the server, and nobody reads", sent)
		}
		o.resp.Body.Close()
		o.to.Close()
		for answer, want := range map[string]string{
			"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno":                       "404 Not Foundno",
			"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n":                  "502 Bad Gatewaythe server on port 3000 does not answer as HTTP does, or broke off\n",
			"HTTP/1.1 200 OK\r\nTether-Upgrade: websocket\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno": "no",
		} {
			w.serve = says(answer)
			o := w.open()
			if got := text(o.resp); got != want || o.resp.Header.Get(ahp.PortsUpgrade) != "" {
				t.Errorf("%q: %q, %v", answer, got, o.resp.Header)
			}
			o.to.Close()
		}
	})
}
