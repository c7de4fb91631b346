package preview

import (
	"bufio"
	"context"
	"errors"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"tether/ahp"
)

// quiet drops what the proxy would log: broken streams are no news.
var quiet = stdlog.New(io.Discard, "", 0)

// way is a Request with WebSockets as a proxy of HTTP/1.1 expects them.
type way struct{ inner http.RoundTripper }

// RoundTrip implements http.RoundTripper. Trailers are dropped: no page can read them.
func (w way) RoundTrip(r *http.Request) (*http.Response, error) {
	if isUpgrade(r) {
		return w.upgrade(r)
	}
	a, err := w.inner.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	seen := *a
	seen.Trailer = nil
	return &seen, nil
}

// upgrade asks for a WebSocket. Both bodies are its two directions.
func (w way) upgrade(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Del("Connection")
	r.Header.Del("Upgrade")
	r.Header.Set(ahp.PortsUpgrade, "websocket")
	body, up := io.Pipe()
	r.Body, r.ContentLength = body, -1
	a, err := w.inner.RoundTrip(r)
	if err != nil {
		up.Close()
		return nil, err
	}
	seen := *a
	seen.Trailer = nil
	if a.StatusCode != http.StatusOK || a.Header.Get(ahp.PortsUpgrade) == "" { // refused
		up.Close()
		return &seen, nil
	}
	seen.Header = a.Header.Clone()
	seen.Header.Set("Connection", "Upgrade")
	seen.Header.Set("Upgrade", "websocket")
	seen.Status, seen.StatusCode = "101 Switching Protocols", http.StatusSwitchingProtocols
	seen.Proto, seen.ProtoMajor, seen.ProtoMinor = "HTTP/1.1", 1, 1
	seen.ContentLength, seen.TransferEncoding = 0, nil
	seen.Body = &socket{a.Body, up}
	return &seen, nil
}

// socket is both directions of a WebSocket at the machine's side.
type socket struct {
	down io.ReadCloser
	up   *io.PipeWriter
}

var errSocketEnded = errors.New("the dev server has ended the WebSocket")

// Read implements io.Reader. The end of one direction is that of the WebSocket: the other
// one must not wait for the browser.
func (s *socket) Read(p []byte) (int, error) {
	n, err := s.down.Read(p)
	if err == io.EOF {
		err = errSocketEnded
	}
	return n, err
}

// Write implements io.Writer.
func (s *socket) Write(p []byte) (int, error) { return s.up.Write(p) }

// Close implements io.Closer.
func (s *socket) Close() error {
	_ = s.up.Close() // never fails
	return s.down.Close()
}

// answer is the answer to a browser. It breaks off when ctx ends, however slowly the
// browser reads.
type answer struct {
	http.ResponseWriter
	ctx     context.Context
	conn    *http.ResponseController
	began   atomic.Bool
	closing chan struct{}
	closed  chan struct{}
}

func newAnswer(ctx context.Context, w http.ResponseWriter) *answer {
	a := &answer{ResponseWriter: w, ctx: ctx, conn: http.NewResponseController(w), closing: make(chan struct{}), closed: make(chan struct{})}
	go a.breakOff()
	return a
}

// breakOff ends a write that waits for the browser, after ctx. An answer that has not
// begun is left: it can still say why.
func (a *answer) breakOff() {
	defer close(a.closed)
	select {
	case <-a.closing:
		return
	case <-a.ctx.Done():
	}
	again := time.NewTicker(breakEvery) // a write that begins meanwhile sets a deadline of its own
	defer again.Stop()
	for {
		if a.began.Load() {
			_ = a.conn.SetWriteDeadline(time.Now()) // fails only with the connection
		}
		select {
		case <-a.closing:
			return
		case <-again.C:
		}
	}
}

func (a *answer) close() {
	close(a.closing)
	<-a.closed
}

// WriteHeader implements http.ResponseWriter. Early hints of dev servers are dropped.
func (a *answer) WriteHeader(status int) {
	if status >= 100 && status < 200 {
		return
	}
	a.began.Store(true)
	a.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (a *answer) Write(p []byte) (int, error) {
	a.began.Store(true)
	return a.ResponseWriter.Write(p)
}

// Unwrap lets an http.ResponseController find further methods.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// Hijack implements http.Hijacker: the connection ends with ctx, and when the browser
// does not read.
func (a *answer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := a.conn.Hijack()
	if err != nil {
		return nil, nil, err
	}
	context.AfterFunc(a.ctx, func() { _ = conn.Close() }) // ctx ends with the request; it is gone even if that fails
	return &browser{conn}, buffered, nil
}

// browser is a browser's connection that must move.
type browser struct{ net.Conn }

// Write implements io.Writer.
func (b *browser) Write(p []byte) (int, error) {
	if err := b.SetWriteDeadline(time.Now().Add(moveTime)); err != nil {
		return 0, err
	}
	return b.Conn.Write(p)
}

// slowBody is a body that may take as long as it moves.
type slowBody struct {
	io.ReadCloser
	conn *http.ResponseController
	left int // bytes until the time begins again
}

// Read implements io.Reader.
func (b *slowBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		_ = b.conn.SetReadDeadline(time.Now().Add(moveTime)) // fails only with the connection
		b.left = moveStep
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= n
	return n, err
}
