package lentports

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"tether/agent/devserver"
	"tether/agent/fetch"
	"tether/agent/term"
	"tether/ahp"
	"tether/internal/loopback"
)

// keep is how long a connection to a server waits for the next request. Node.js closes
// one after 5 s.
const keep = 4 * time.Second

// wayKey names a port that is lent to a host.
type wayKey struct {
	host string
	id   term.ID
	port int
}

// way is the way to a lent port, with the connections that are kept for the next request.
type way struct{ *fetch.Transport }

// way returns the way to a request's port, which exists for as long as the port is lent.
func (s *Server) way(q *request) (*way, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := q.key()
	if x := s.ways[key]; x != nil {
		return x, nil
	}
	_, lent, done, err := q.h.PortLent(context.Background(), q.host, key.port, nil)
	if err != nil {
		return nil, err
	}
	dial := s.opts.Dial
	if dial == nil {
		dial = devserver.Of(q.h).Dial
	}
	x := &way{fetch.NewTransport(func(ctx context.Context) (net.Conn, error) { return dial(ctx, key.port) },
		fetch.TransportOptions{Keep: keep, FirstByte: s.opts.FirstByte})}
	s.ways[key] = x
	context.AfterFunc(lent, func() {
		s.mu.Lock()
		if s.ways[key] == x {
			delete(s.ways, key)
		}
		s.mu.Unlock()
		x.CloseIdleConnections()
		done()
	})
	return x, nil
}

var errIdle = errors.New("nothing passed for too long")

// pass passes a request on to the server, and its answer back.
func (s *Server) pass(w http.ResponseWriter, r *http.Request, q *request) {
	x, err := s.way(q)
	if err != nil {
		refuse(w, refusedf(http.StatusForbidden, "port %d: %v", q.port.Port, err))
		return
	}
	s.count(q)
	defer func() {
		if q.foreign { // after the answer, which this would end
			q.h.ClosePort(q.host, q.port.Port, devserver.ChangedHands)
		}
	}()
	ctx, cancel := context.WithCancelCause(q.ctx)
	defer cancel(nil)
	idle := time.AfterFunc(s.opts.Idle, func() { cancel(errIdle) })
	defer idle.Stop()
	passed := func() { idle.Reset(s.opts.Idle) }
	// The end also frees whoever reads or writes a direction that stands still.
	rc := http.NewResponseController(w)
	unblock := func() { _ = rc.SetReadDeadline(time.Unix(1, 0)) }
	freed := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(freed)
		unblock()
		_ = rc.SetWriteDeadline(time.Unix(1, 0))
	})
	defer func() {
		if !stop() {
			<-freed // w must not be used afterwards
		}
	}()
	r.Body = &counted{r.Body, passed}
	buffers := buffers{big: &s.buffers}
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) { q.rewrite(p.Out) },
		Transport: roundTripper(func(out *http.Request) (*http.Response, error) {
			resp, err := x.ask(out, q, r.Body, unblock)
			if err != nil {
				return nil, err
			}
			buffers.small = q.upgraded || strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
			resp.Body = &counted{resp.Body, passed}
			return resp, nil
		}),
		ModifyResponse: func(resp *http.Response) error { q.outward(resp); return nil },
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, err error) { refuse(w, s.failed(ctx, q, err)) },
		FlushInterval:  -1, // at once: events and the bytes of a WebSocket wait for no others
		BufferPool:     &buffers,
		ErrorLog:       s.silence, // the reset tells what breaks off
	}
	proxy.ServeHTTP(final{w}, r.WithContext(ctx))
}

// rewrite makes a request what the server gets: as if its page were opened on this
// machine.
func (q *request) rewrite(out *http.Request) {
	out.URL, out.Host = q.url, q.url.Host
	for name := range out.Header {
		if strings.HasPrefix(name, ahp.PortsPrefix) || strings.HasPrefix(name, "X-Forwarded-") || slices.Contains(misleading, name) {
			delete(out.Header, name)
		}
	}
	if q.upgrade {
		out.Header.Set("Connection", "Upgrade")
		out.Header.Set("Upgrade", webSocket)
	}
}

// misleading are headers by which some servers take another path or method than the
// request's, or wait for whoever sends it.
var misleading = []string{"Expect", "X-Http-Method", "X-Http-Method-Override", "X-Method-Override", "X-Original-Url", "X-Rewrite-Url"}

// outward makes an answer what the host gets. A redirect to the server itself stays
// within whatever name the page was opened by.
func (q *request) outward(resp *http.Response) {
	for name := range resp.Header {
		if strings.HasPrefix(name, ahp.PortsPrefix) || name == "Alt-Svc" { // which names another port
			delete(resp.Header, name)
		}
	}
	if q.upgraded {
		resp.Header.Set(ahp.PortsUpgrade, webSocket)
	}
	if to, err := url.Parse(resp.Header.Get("Location")); err == nil && (to.Scheme == "" || to.Scheme == "http" || to.Scheme == "https") && to.User == nil && to.Port() == q.url.Port() && loopback.Is(to.Hostname()) {
		to.Scheme, to.Host = "", ""
		if to.Path == "" {
			to.Path = "/"
		}
		if !strings.HasPrefix(to.EscapedPath(), "//") { // which would name a host
			resp.Header.Set("Location", to.String())
		}
	}
}

// failed says in words for people why a server has not answered.
func (s *Server) failed(ctx context.Context, q *request, err error) error {
	port := q.port.Port
	own, is := errors.AsType[*devserver.Error](err)
	switch {
	case q.ctx.Err() != nil:
		return refusedf(http.StatusForbidden, "port %d: %v", port, context.Cause(q.ctx))
	case ctx.Err() != nil:
		return refusedf(http.StatusGatewayTimeout, "port %d: %v", port, context.Cause(ctx))
	case is && own.Kind == devserver.Foreign:
		q.foreign = true
		return refusedf(http.StatusForbidden, "%v", own)
	case is:
		return refusedf(http.StatusNotFound, "%v", own)
	case fetch.IsTimeout(err):
		return refusedf(http.StatusGatewayTimeout, "the server on port %d has not answered in time", port)
	}
	s.opts.Logger.Debug().Err(err).Str("terminal", string(q.h.ID())).Int("port", port).Msg("a lent port")
	return refusedf(http.StatusBadGateway, "the server on port %d does not answer as HTTP does, or broke off", port)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// counted is a body that says when something has passed.
type counted struct {
	io.ReadCloser
	passed func()
}

func (c *counted) Read(p []byte) (n int, err error) {
	n, err = c.ReadCloser.Read(p)
	if n > 0 {
		c.passed()
	}
	return n, err
}

// final passes on no informational answers (1xx), of which a server may send any number.
type final struct{ http.ResponseWriter }

func (f final) WriteHeader(status int) {
	if status >= http.StatusOK {
		f.ResponseWriter.WriteHeader(status)
	}
}

// Unwrap is for http.ResponseController.
func (f final) Unwrap() http.ResponseWriter { return f.ResponseWriter }

// The sizes of buffers for the copies of bodies, in bytes.
const (
	bigBuffer   = 32 << 10
	smallBuffer = 2 << 10 // while events are waited for
)

// buffers are big ones for one answer after the other, or small ones.
type buffers struct {
	big   *sync.Pool
	small bool
}

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte {
	if b.small {
		return make([]byte, smallBuffer)
	}
	if p, ok := b.big.Get().(*[bigBuffer]byte); ok {
		return p[:]
	}
	return new([bigBuffer]byte)[:]
}

// Put implements httputil.BufferPool.
func (b *buffers) Put(p []byte) {
	if len(p) == bigBuffer {
		b.big.Put((*[bigBuffer]byte)(p))
	}
}
