package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"tether/ahp"
	"tether/internal/webproxy"
	"tether/jsonrpc"
	"tether/jsonrpc/wsconn"
)

// ErrUnauthorized is returned by Connect when the host refused the credential (HTTP 401
// or 403). Trying again helps only with another credential.
var ErrUnauthorized = errors.New("the host refused the token")

// ErrUnreachable is returned by Connect when no WebSocket could be opened; trying again
// later may help.
var ErrUnreachable = errors.New("the host cannot be reached")

// Bounds of one message from the host. An observer receives the snapshots of many
// terminals in one message. A lending client receives little, and a hostile host must not
// exhaust its memory: it takes at most 2 MiB, and as many values as decode to less than
// 32 MiB.
const (
	DefaultReadLimit = 16 << 20 // bytes
	DefaultMaxValues = 1 << 20  // JSON values, at any depth
	LenderReadLimit  = 2 << 20
	LenderMaxValues  = 18 << 10
)

// Endpoint is a host's address, with the credential to connect to it.
type Endpoint struct {
	URL    string      // ws or wss
	Token  string      // sent as the query parameter tkn, as VS Code's host takes it; "" = none
	Header http.Header // added to the upgrade request
	Pin    Pin         // of the host's certificate, for wss
	// Credential, if not nil, returns the token for each connection to a URL; Token is
	// then ignored. Connect returns its error.
	Credential func(ctx context.Context, url string) (token string, err error)
	// Also are further URLs of the same host, which may have several nodes. If a URL does
	// not answer, Connect tries another one.
	Also []string
	// Last, if not nil, is the URL that answered last. Connect sets it if there are
	// several URLs, and tries it first. A pointer to "" resets it.
	Last *atomic.Pointer[string]
}

// urls returns the URLs in the order in which they are tried: the one that answered last,
// then the others in random order, so that the machines of a dead node do not all move to
// the same other node.
func (e Endpoint) urls() []string {
	all := append([]string{e.URL}, e.Also...)
	rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	if e.Last != nil {
		if last := e.Last.Load(); last != nil {
			if i := slices.Index(all, *last); i > 0 {
				all[0], all[i] = all[i], all[0]
			}
		}
	}
	return all
}

// TLS returns the configuration of a TLS connection to the host; nil means Go's defaults.
func (e Endpoint) TLS() *tls.Config {
	u, err := url.Parse(e.URL)
	if err != nil {
		return nil
	}
	return e.Pin.TLS(u.Hostname())
}

// http returns a client for a few requests to the host outside AHP. It follows no
// redirects, since the requests hold secrets. The caller closes its idle connections.
func (e Endpoint) http() *http.Client {
	return &http.Client{Transport: &http.Transport{Proxy: webproxy.For, TLSClientConfig: e.TLS(), ForceAttemptHTTP2: true, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// withToken returns the URL to dial. Its errors do not hold the URL, which may hold a
// token.
func (e Endpoint) withToken() (string, error) {
	u, err := url.Parse(e.URL)
	if err != nil || u.Host == "" || (u.Scheme != "ws" && u.Scheme != "wss") {
		return "", errors.New("the host's URL must be ws://host:port or wss://host")
	}
	if e.Token != "" {
		q := u.Query()
		q.Set("tkn", e.Token)
		u.RawQuery = q.Encode()
	}
	return u.String(), nil
}

// Connect dials the host and initializes, or resumes if o.Resume is set. It blocks until
// that is done or ctx ends. Afterwards ctx has no effect. Besides the errors of
// ConnectChannel it returns ErrUnauthorized, ErrUnreachable and ErrPin.
func Connect(ctx context.Context, e Endpoint, o Options) (conn *Conn, err error) {
	if len(e.Also) == 0 {
		return connect(ctx, e, o)
	}
	urls := e.urls()
	for i, url := range urls {
		one := e
		one.URL = url
		conn, err = connectWithin(ctx, one, o, len(urls)-i)
		if err == nil || errors.Is(err, ErrNotResumed) {
			if e.Last != nil {
				e.Last.Store(&url)
			}
			return conn, err
		}
		if final(err) || ctx.Err() != nil {
			break
		}
	}
	return nil, err
}

// final reports whether every node of the host would answer with this error.
func final(err error) bool {
	_, version := errors.AsType[*ahp.VersionError](err)
	said, answered := errors.AsType[*jsonrpc.Error](err)
	return version || errors.Is(err, ErrUnauthorized) || errors.Is(err, ErrPin) || answered && said.Code == ahp.CodePermissionDenied
}

// connectWithin is connect within this URL's part of ctx's time. The opened connection
// outlives that time.
func connectWithin(ctx context.Context, e Endpoint, o Options, left int) (*Conn, error) {
	ctx, cancel := withPart(ctx, left)
	defer cancel()
	return connect(ctx, e, o)
}

// withPart returns a context for the next of the URLs that are left to try. If ctx has a
// deadline, each URL gets an equal part of the time.
func withPart(ctx context.Context, left int) (context.Context, context.CancelFunc) {
	end, bounded := ctx.Deadline()
	if !bounded || left <= 1 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
}

// connect is Connect for one URL.
func connect(ctx context.Context, e Endpoint, o Options) (*Conn, error) {
	if e.Credential != nil {
		token, err := e.Credential(ctx, e.URL)
		if err != nil {
			return nil, err
		}
		e.Token = token
	}
	target, err := e.withToken()
	if err != nil {
		return nil, err
	}
	limit := o.ReadLimit
	if limit <= 0 {
		limit = DefaultReadLimit
	}
	ch, err := wsconn.Dial(ctx, target, wsconn.Options{ReadLimit: limit, HTTPHeader: e.Header, TLSConfig: e.TLS()})
	if refused, ok := errors.AsType[*wsconn.DialError](err); ok &&
		(refused.Status == http.StatusUnauthorized || refused.Status == http.StatusForbidden) {
		return nil, fmt.Errorf("%w: %w", ErrUnauthorized, err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return ConnectChannel(ctx, ch, o)
}

// ClockSkew returns how far the host's clock was ahead of this machine's when the
// connection was made, to about a second; false where the host did not say.
func (c *Conn) ClockSkew() (time.Duration, bool) {
	ws, ok := c.ch.(*wsconn.Conn)
	if !ok {
		return 0, false
	}
	return ws.ClockSkew()
}
