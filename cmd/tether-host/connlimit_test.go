package main

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"tether/ahp/client"
	"tether/host"
	"tether/internal/testkit"
	"tether/internal/testkit/must"
	"tether/jsonrpc/wsconn"
	"tether/platform/rawio"
)

// connLimiterPipes serves a handler in memory, for at most so many connections, until the
// test ends.
func connLimiterPipes(t *testing.T, h http.Handler, most int) *testkit.Pipes {
	l := testkit.NewPipes()
	server := newServer(h, most)
	served := make(chan struct{})
	go func() { defer close(served); _ = server.Serve(l) }() // until it is closed
	t.Cleanup(func() { server.Close(); <-served })
	return l
}

// Idle connections that have waited longest give way to new ones: half-open connections
// keep nobody out, and their number is bounded.
func TestTheSlowMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(host.Options{})
		defer h.Close()
		const most, many = 10, 100
		l := connLimiterPipes(t, h, most)
		ended := make(chan struct{}, many)
		for i := range many {
			c := reach(t, l)
			defer c.Close()
			if text := []string{"", "G", "GET / HTTP/1.1\r\nHost: localhost\r\n"}[i%3]; text != "" {
				_, _ = io.WriteString(c, text) // it may have had to go already
			}
			go func() {
				_, _ = io.Copy(io.Discard, c)
				ended <- struct{}{}
			}()
			synctest.Wait()
		}
		if n := len(ended); n != many-most {
			t.Errorf("%d of %d slow connections had to go, want all but %d", n, many, most)
		}
		ch, err := wsconn.Dial(t.Context(), "ws://localhost/", wsconn.Options{DialContext: dialOf(l)})
		if err != nil {
			t.Fatalf("somebody who is quick: %v", err)
		}
		c := must.Get(client.ConnectChannel(t.Context(), ch, client.Options{ClientID: "quick"}))(t)
		defer c.Close()
		for range 2 * most { // more slow ones do it no harm
			slow := reach(t, l)
			defer slow.Close()
			synctest.Wait()
		}
		if err := c.Ping(t.Context()); err != nil {
			t.Errorf("who was let in: %v", err)
		}
	})
}

// Requests that wait for something are bounded, too.
func TestRequestsAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := connLimiterPipes(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Minute)
			fmt.Fprintln(w, "done")
		}), 3)
		answers := make(chan int, 10)
		for range 10 {
			c := reach(t, l)
			defer c.Close()
			go func() {
				fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
				answer, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					answers <- 0
					return
				}
				answers <- answer.StatusCode
			}()
			synctest.Wait() // who waits to be asked for nothing may have to go
		}
		count := map[int]int{}
		for range 10 {
			count[<-answers]++
		}
		if count[http.StatusOK] != 6 || count[http.StatusServiceUnavailable] != 4 {
			t.Errorf("answers %v, want 6 that were served and 4 that were not", count)
		}
	})
}

// An answer that nobody takes is given up, one that is taken slowly is not.
func TestAnswersThatAreNotTaken(t *testing.T) {
	const size = 1 << 20
	for name, test := range map[string]struct {
		every time.Duration // reads 16 KiB
		whole bool
	}{
		"never":  {time.Hour, false},
		"slowly": {5 * time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				over := make(chan time.Duration, 1)
				l := connLimiterPipes(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					began := time.Now()
					_, _ = io.WriteString(w, strings.Repeat("x", size))
					over <- time.Since(began)
				}), 3)
				c := reach(t, l)
				defer c.Close()
				fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
				got := 0
				buf := make([]byte, 16<<10)
				for {
					time.Sleep(test.every)
					n, err := io.ReadFull(c, buf)
					got += n
					if err != nil {
						break
					}
				}
				if took := <-over; test.whole != (got > size) || !test.whole && took > 2*answerTime {
					t.Errorf("%d bytes of %d came, and it took %v", got, size, took)
				}
			})
		})
	}
}

// The same holds for an answer with only headers: a client that continues to send
// requests without reading keeps no connection, which counts nowhere.
func TestAnAnswerWithoutABodyThatIsNotTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := host.New(host.Options{})
		defer h.Close()
		c := reach(t, connLimiterPipes(t, h, 3))
		defer c.Close()
		fmt.Fprint(c, "POST /logout HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n")
		time.Sleep(2 * answerTime)
		if got, err := io.ReadAll(c); len(got) > 0 {
			t.Errorf("after %v it is still there and sends %q: %v", 2*answerTime, got, err)
		}
	})
}

// Only a trusted proxy names its client, and no client behind it can claim to be another.
func TestTrustedProxies(t *testing.T) {
	trusted := must.Get(parseNetworks("--trusted-proxy", []string{"192.0.2.1", "10.0.0.0/8", "2001:db8::/32"}))(t)
	for name, c := range map[string]struct {
		peer, want string
		forwarded  []string
	}{
		"nobody's proxy":               {"198.51.100.7:5", "198.51.100.7:5", []string{"203.0.113.9"}},
		"a proxy that does not say":    {"192.0.2.1:5", "192.0.2.1:5", nil},
		"a proxy":                      {"192.0.2.1:5", "203.0.113.9:0", []string{"203.0.113.9"}},
		"a proxy as IPv4 in IPv6":      {"[::ffff:192.0.2.1]:5", "203.0.113.9:0", []string{"203.0.113.9"}},
		"who claims to be another":     {"192.0.2.1:5", "203.0.113.9:0", []string{"198.51.100.1, 203.0.113.9"}},
		"two headers":                  {"192.0.2.1:5", "203.0.113.9:0", []string{"198.51.100.1", "203.0.113.9"}},
		"two proxies":                  {"192.0.2.1:5", "203.0.113.9:0", []string{"198.51.100.1, 203.0.113.9, 10.1.2.3"}},
		"IPv6":                         {"[2001:db8::1]:5", "[2a00::9]:0", []string{"2a00::9"}},
		"no address":                   {"192.0.2.1:5", "192.0.2.1:5", []string{"evil"}},
		"no address behind a proxy":    {"192.0.2.1:5", "10.1.2.3:0", []string{"evil, 10.1.2.3"}},
		"an address with a port in it": {"192.0.2.1:5", "192.0.2.1:5", []string{"203.0.113.9:80"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			h := proxies(trusted).handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.RemoteAddr }))
			r := &http.Request{RemoteAddr: c.peer, Header: http.Header{"X-Forwarded-For": c.forwarded}}
			if h.ServeHTTP(nil, r); got != c.want {
				t.Errorf("the address is %s, want %s", got, c.want)
			}
		})
	}
	if _, err := parseNetworks("--trusted-proxy", []string{"proxy.example"}); err == nil {
		t.Error("a name was taken as an address")
	}
	if none := proxies(nil); none.trusts(netip.MustParseAddr("127.0.0.1")) {
		t.Error("without proxies one is trusted")
	}
}

// Connections are read and written without Go's scheduler, also below TLS.
func TestConnectionsAreWrapped(t *testing.T) {
	for _, secure := range []*tls.Config{nil, {}} {
		l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
		l = wrap(l, secure)
		defer l.Close()
		_, conn := testkit.Connect(t, l)
		if secure != nil {
			conn = conn.(*tls.Conn).NetConn()
		}
		if rawio.Wrap(conn) != conn {
			t.Errorf("%T is not wrapped", conn)
		}
	}
}
