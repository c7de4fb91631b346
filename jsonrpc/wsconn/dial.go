package wsconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"github.com/coder/websocket"

	"tether/internal/webproxy"
	"tether/platform/rawio"
)

const (
	// dialTimeout and handshakeTimeout bound connecting and waiting for the server's
	// answer where the context allows longer.
	dialTimeout      = 15 * time.Second
	handshakeTimeout = 15 * time.Second

	// maxResponseHeader bounds the server's answer, in bytes.
	maxResponseHeader = 64 << 10
)

// Dial connects to a ws or wss URL. It blocks until the handshake is done, at most until
// ctx is done; afterwards ctx has no effect. Redirects are not followed. It returns a
// [*DialError] if the server refused; other errors mean that there is no such server, or
// that it does not speak WebSocket. The URL, whose query may hold a token, is not part of
// any error.
func Dial(ctx context.Context, rawURL string, o Options) (*Conn, error) {
	o = o.withDefaults()
	if err := checkURL(rawURL); err != nil {
		return nil, err
	}
	transport := newTransport(o)
	var l *link
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { l = linkBelow(info.Conn) },
	})
	ws, resp, err := websocket.Dial(ctx, rawURL, &websocket.DialOptions{
		HTTPClient: &http.Client{
			Transport:     transport,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		HTTPHeader:      o.HTTPHeader,
		CompressionMode: o.compression(),
	})
	if err != nil {
		transport.CloseIdleConnections() // a refused request leaves one
		return nil, dialError(resp, err, transport.Proxy != nil, rawURL)
	}
	c := newConn(ws, l, o)
	if theirs, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		skew := time.Until(theirs)
		c.skew = &skew
	}
	return c, nil
}

func checkURL(rawURL string) error {
	u, err := url.Parse(rawURL)
	switch {
	case err != nil:
		return fmt.Errorf("wsconn: bad URL: %w", withoutURL(err))
	case u.Scheme != "ws" && u.Scheme != "wss":
		return fmt.Errorf("wsconn: URL must begin with ws:// or wss://, not %q", u.Scheme)
	case u.Host == "":
		return errors.New("wsconn: URL has no host")
	}
	return nil
}

// newTransport returns a transport for one connection, with a [link] at its bottom, below
// TLS and proxy.
func newTransport(o Options) *http.Transport {
	dial := o.DialContext
	t := &http.Transport{
		TLSClientConfig:        o.TLSConfig.Clone(),
		TLSHandshakeTimeout:    handshakeTimeout,
		ResponseHeaderTimeout:  handshakeTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
	}
	if dial == nil {
		dial = (&net.Dialer{Timeout: dialTimeout}).DialContext // sets TCP_NODELAY
		t.Proxy = webproxy.For
	}
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return newLink(rawio.Wrap(c), o.WriteTimeout), nil
	}
	return t
}

// linkBelow finds the link below any number of TLS connections.
func linkBelow(c net.Conn) *link {
	for {
		switch t := c.(type) {
		case *link:
			return t
		case interface{ NetConn() net.Conn }:
			c = t.NetConn()
		default:
			// newTransport lets no other connection in.
			panic(fmt.Sprintf("wsconn: unexpected connection %T", c))
		}
	}
}

// dialError maps the library's error to the one that Dial promises. It names the proxy of
// the environment, if proxies were looked for and there is one: the host may be right and
// the proxy wrong.
func dialError(resp *http.Response, err error, proxies bool, rawURL string) error {
	if resp != nil && resp.StatusCode != http.StatusSwitchingProtocols {
		return &DialError{Status: resp.StatusCode}
	}
	if u, _ := url.Parse(rawURL); proxies {
		if proxy, _ := webproxy.Of(u); proxy != nil {
			return fmt.Errorf("wsconn: dial through the proxy %s of the environment: %w", proxy.Redacted(), withoutURL(err))
		}
	}
	return fmt.Errorf("wsconn: dial: %w", withoutURL(err))
}

// withoutURL strips the part of err that shows the URL.
func withoutURL(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
