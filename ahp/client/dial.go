package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"tether/jsonrpc/wsconn"
)

// ErrUnauthorized is returned by Connect when the host refused the credential (HTTP 401 or 403): trying again helps only
// with another one.
var ErrUnauthorized = errors.New("the host refused the token")

// ErrUnreachable is returned by Connect when no WebSocket could be opened; trying again later may help.
var ErrUnreachable = errors.New("the host cannot be reached")

// Bounds of one message from the host. An observer receives snapshots of many terminals as one message. A lending client receives little,
// and a hostile host must not bring it down: at most 2 MiB, and as many values as decode to less than 32 MiB.
const (
	DefaultReadLimit = 16 << 20 // bytes
	DefaultMaxValues = 1 << 20  // JSON values, at any depth
	LenderReadLimit  = 2 << 20
	LenderMaxValues  = 20 << 10
)

// Endpoint is where a host is and how to get in.
type Endpoint struct {
	URL    string      // ws or wss
	Token  string      // sent as the query parameter tkn, as VS Code's host takes it; "" = none
	Header http.Header // added to the upgrade request
	Pin    Pin         // of the host's certificate, for wss
	// Credential, if not nil, is asked for the token before each connection, instead of Token. Connect returns its error.
	Credential func(context.Context) (token string, err error)
}

// TLS is the configuration of a TLS connection to it; nil means Go's defaults.
func (e Endpoint) TLS() *tls.Config {
	u, err := url.Parse(e.URL)
	if err != nil {
		return nil
	}
	return e.Pin.TLS(u.Hostname())
}

// withToken returns the URL to dial. Its errors do not hold the URL, which may hold a token.
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

// Connect dials the host and initializes, or resumes if o.Resume is set. It blocks until that is done or ctx is; later ctx
// has no effect. Besides the errors of ConnectChannel it returns ErrUnauthorized, ErrUnreachable and ErrPin.
func Connect(ctx context.Context, e Endpoint, o Options) (*Conn, error) {
	if e.Credential != nil {
		token, err := e.Credential(ctx)
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

// ClockSkew returns how far the host's clock was ahead of this machine's when the connection was made, to about a second; false where
// the host did not say.
func (c *Conn) ClockSkew() (time.Duration, bool) {
	ws, ok := c.ch.(*wsconn.Conn)
	if !ok {
		return 0, false
	}
	return ws.ClockSkew()
}
