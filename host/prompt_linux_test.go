package host_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"tether/host"
	"tether/internal/testkit/must"
	"tether/platform/rawio"
)

// watchedListener counts its connections' writes within Wakes.Deliver and elsewhere.
type watchedListener struct {
	net.Listener
	promptly, otherwise atomic.Int64
}

func (l *watchedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return watchedConn{c, l}, err
}

type watchedConn struct {
	net.Conn
	l *watchedListener
}

// NetConn says which socket is below, as tls.Conn does.
func (c watchedConn) NetConn() net.Conn { return c.Conn }

func (c watchedConn) Write(p []byte) (int, error) {
	stack := make([]byte, 16<<10)
	if strings.Contains(string(stack[:runtime.Stack(stack, false)]), "channel.(*Wakes).Deliver(") {
		c.l.promptly.Add(1)
	} else {
		c.l.otherwise.Add(1)
	}
	return c.Conn.Write(p)
}

// The goroutine that reads a machine's connection writes short output to an observer for
// whom nothing else waits, and never to one that does not read.
func TestShortOutputIsWrittenByTheReader(t *testing.T) {
	h := host.New(host.Options{})
	t.Cleanup(h.Close)
	tcp := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	l := &watchedListener{Listener: rawio.Listener{Listener: tcp}} // as in tether-host: the socket is below two connections
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: h}}
	server.Start()
	t.Cleanup(server.Close)
	url := "ws" + strings.TrimPrefix(server.URL, "http")

	owner := dial(t, url, "laptop", viewOptions{resume: true})
	owner.create(uri)
	observer := dial(t, url, "observer", viewOptions{subs: []string{uri}})
	text := ""
	for range 200 {
		owner.output(uri, "k", int64(len(text)))
		text += "k"
		observer.awaitText(uri, text)
	}
	if n := l.promptly.Load(); n < 100 {
		t.Errorf("the reading goroutine wrote %d of 200 echoes", n)
	}
	observer.close()

	unread(t, url)
	owner.await("the observer", func() bool { return owner.observers[uri] == 1 })
	f := &flooder{owner: owner}
	f.sent.Skip(int64(len(text)))
	for range 8 {
		f.flood(t, 256<<10, nil) // the system's buffers are full
	}
	l.promptly.Store(0)
	at := f.sent.Offset()
	for range 100 {
		owner.output(uri, "k", at)
		at++
	}
	owner.await("an acknowledgement", func() bool { return owner.acks[uri] == at })
	if n := l.promptly.Load(); n > 0 {
		t.Errorf("the reading goroutine wrote %d times to an observer that reads nothing", n)
	}
}
