package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// Transport asks one server in HTTP/1.1, in plain text or with TLS, whichever it speaks.
// It looks up no name: Dial makes each connection, whatever a request's URL says. It is
// safe for concurrent use.
type Transport struct {
	rt     *http.Transport
	speaks atomic.Int32 // what the last answer was in: 0 if there was none, else plain or secure
}

const (
	plain int32 = iota + 1
	secure
)

// TransportOptions are the bounds of a Transport.
type TransportOptions struct {
	// Keep is how long an unused connection stays open for the next request; 0: each
	// request has a connection of its own.
	Keep time.Duration
	// FirstByte bounds the time from the request to the answer's headers; 0: the
	// request's context does alone.
	FirstByte time.Duration
}

// NewTransport returns a Transport to the server to which dial connects.
func NewTransport(dial Dial, o TransportOptions) *Transport {
	return &Transport{rt: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			conn, err := dial(ctx)
			if err != nil {
				return nil, &DialError{err}
			}
			return conn, nil
		},
		DisableKeepAlives: o.Keep == 0, IdleConnTimeout: o.Keep, MaxIdleConnsPerHost: maxIdle, ResponseHeaderTimeout: o.FirstByte, TLSHandshakeTimeout: handshakeTimeout,
		ReadBufferSize: headBuffer, WriteBufferSize: headBuffer,
		DisableCompression: true, MaxResponseHeaderBytes: maxHead,
		// Development servers have certificates that they have made themselves, and the
		// connection does not leave this machine.
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
	}}
}

const (
	// maxIdle bounds the unused connections: browsers open six at a time.
	maxIdle = 8
	// headBuffer is for headers, in bytes: bodies are read past it.
	headBuffer = 1 << 10
	// handshakeTimeout is how long a server that answers nothing else may take for TLS.
	handshakeTimeout = 10 * time.Second
)

// DialError is an error of a Dial.
type DialError struct{ err error }

func (e *DialError) Error() string { return e.err.Error() }

// Unwrap returns the Dial's own error.
func (e *DialError) Unwrap() error { return e.err }

// CloseIdleConnections closes the connections that no request uses.
func (t *Transport) CloseIdleConnections() { t.rt.CloseIdleConnections() }

// RoundTrip implements http.RoundTripper. The scheme of the request's URL does not
// matter, that of the answer's request is the one that was used. Origin and Referer
// follow it where they name the request's own host. A request without a body is sent a
// second time if the server seems not to have understood the first one; so that one with
// a body need not be, a HEAD is sent ahead of it while nothing is known of the server.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	repeats := req.Body == nil || req.Body == http.NoBody
	speaks := t.speaks.Load()
	if speaks == 0 && !repeats {
		if err := t.learn(req); err != nil {
			req.Body.Close()
			return nil, err
		}
		speaks = t.speaks.Load()
	}
	speaks = max(speaks, plain)
	resp, err := t.try(req, speaks)
	switch {
	case !strange(resp, err):
		t.speaks.Store(speaks)
		return resp, nil
	case !repeats || req.Context().Err() != nil || refusedToDial(err) || IsTimeout(err):
		return resp, err
	}
	other := plain + secure - speaks
	again, failed := t.try(req, other)
	if failed != nil || other == plain && strange(again, nil) {
		if failed == nil {
			again.Body.Close()
		}
		return resp, err
	}
	if resp != nil {
		resp.Body.Close()
	}
	t.speaks.Store(other)
	return again, nil
}

// learn asks for the root of the server, to know what it speaks.
func (t *Transport) learn(req *http.Request) error {
	head, err := http.NewRequestWithContext(req.Context(), http.MethodHead, "http://"+req.URL.Host+"/", nil)
	if err != nil {
		return err
	}
	resp, err := t.RoundTrip(head)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

// strange reports whether an answer may be that of a server that speaks the other of the
// two: an alert, nothing, or an error that says so.
func strange(resp *http.Response, err error) bool {
	return err != nil || resp.StatusCode == http.StatusBadRequest && resp.Header.Get("Server") == "" && resp.ContentLength < 200
}

func refusedToDial(err error) bool {
	_, is := errors.AsType[*DialError](err)
	return is
}

// IsTimeout reports whether an error says that a server has not answered in time.
func IsTimeout(err error) bool {
	e, is := errors.AsType[net.Error](err)
	return is && e.Timeout()
}

func (t *Transport) try(req *http.Request, speaks int32) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Scheme = "http"
	if speaks == secure {
		req.URL.Scheme = "https"
		for _, name := range []string{"Origin", "Referer"} {
			if rest, ok := strings.CutPrefix(req.Header.Get(name), "http://"+req.URL.Host); ok && (rest == "" || rest[0] == '/') {
				req.Header.Set(name, "https://"+req.URL.Host+rest)
			}
		}
	}
	return t.rt.RoundTrip(req)
}
