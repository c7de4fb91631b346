package device

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"tether/ahp/client"
	"tether/internal/jsonspan"
	"tether/internal/retry"
	"tether/internal/webproxy"
	"tether/pairing"
)

const (
	// askTime bounds the question whether the host speaks the protocol.
	askTime = 5 * time.Second
	// requestTime bounds each other request, except a wait: it may take pairing.WaitTime
	// and waitMargin.
	requestTime = 10 * time.Second
	waitMargin  = 5 * time.Second
	// pause is the least time between the beginnings of two waits.
	pause = time.Second
)

var (
	// ErrNotOffered is returned by HostKey for a host that does not speak the protocol,
	// or not within 5 s.
	ErrNotOffered = errors.New("the host does not pair by keys")
	// ErrRevoked is returned when the host does not know this machine's key: the key was
	// never paired, or was revoked there. errors.Is also finds client.ErrUnauthorized in
	// it.
	ErrRevoked = fmt.Errorf("the host does not know this machine's key, or has revoked it: %w", client.ErrUnauthorized)
	// ErrIdentity is returned when the host's key is not the one with which it was
	// paired. errors.Is also finds client.ErrUnauthorized in it.
	ErrIdentity = fmt.Errorf("the host's identity has changed: %w", client.ErrUnauthorized)
	// ErrExpired is returned by both Waits when nobody has approved in time, and by that
	// of Pairing when the host has forgotten the pairing.
	ErrExpired = errors.New("nobody approved the pairing in time")
	// ErrToken is returned by Redeem for a pairing token that is invalid, has expired or
	// was used.
	ErrToken = errors.New("the pairing token is invalid, expired or already used")
)

// Client sends requests to one host. It is safe for concurrent use. Close closes its idle
// connections.
type Client struct {
	base string // the host's http(s) URL, to which paths are appended
	key  ed25519.PrivateKey
	http *http.Client
}

// New returns a client of the host at e, whose URL was checked by the caller. It does not
// connect. Without a key the client can only log in.
func New(e client.Endpoint, key ed25519.PrivateKey) (*Client, error) {
	u, err := url.Parse(e.URL)
	if err != nil {
		return nil, errors.New("invalid host URL")
	}
	u.Scheme = map[string]string{"ws": "http", "wss": "https"}[u.Scheme]
	if u.Scheme == "" || u.Host == "" {
		return nil, errors.New("the host's URL must be ws://host:port or wss://host")
	}
	u.RawQuery, u.Path = "", strings.TrimSuffix(u.Path, "/")
	secure := e.TLS()
	if secure == nil {
		secure = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return &Client{base: u.String(), key: key, http: &http.Client{
		Transport: &http.Transport{Proxy: webproxy.For, TLSClientConfig: secure, TLSHandshakeTimeout: requestTime,
			DialContext: (&net.Dialer{Timeout: requestTime}).DialContext, MaxResponseHeaderBytes: pairing.MaxMessage, MaxIdleConns: 1},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

func (c *Client) public() ed25519.PublicKey { return c.key.Public().(ed25519.PublicKey) }

// HostKey returns the host's key, if the host speaks the protocol. It blocks for at most
// 5 s. Errors: ErrNotOffered, client.ErrUnreachable, client.ErrPin.
func (c *Client) HostKey(ctx context.Context) (ed25519.PublicKey, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var id pairing.Identity
	err := c.do(ctx, http.MethodGet, pairing.Path+"identity", "", nil, &id)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, ErrNotOffered
	case errors.Is(err, client.ErrUnreachable):
		return nil, err
	case err != nil, id.Version != pairing.Version, len(id.HostKey) != ed25519.PublicKeySize:
		return nil, ErrNotOffered
	}
	return id.HostKey, nil
}

// Pairing is a pairing that waits for somebody at the host.
type Pairing struct {
	Code    string            // to be compared with the one at the host
	HostKey ed25519.PublicKey // not to be trusted before Wait has returned nil

	client *Client
	id     string
}

// Begin begins to pair. name is what this machine calls itself.
func (c *Client) Begin(ctx context.Context, name string) (*Pairing, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	p := pairing.Pair{Device: c.public(), Name: name, DeviceNonce: nonce()}
	var begun pairing.Begun
	err := c.do(ctx, http.MethodPost, pairing.Path+"begin", "", pairing.Begin{DeviceKey: p.Device, Name: name,
		Commitment: pairing.Commit(p.Device, name, p.DeviceNonce)}, &begun)
	if err != nil {
		return nil, err
	}
	if len(begun.HostKey) != ed25519.PublicKeySize || len(begun.Nonce) != pairing.NonceSize {
		return nil, errAnswer
	}
	p.Host, p.HostNonce = begun.HostKey, begun.Nonce
	var revealed pairing.Revealed
	err = c.do(ctx, http.MethodPost, pairing.Path+"reveal", "", pairing.Reveal{ID: begun.ID, Nonce: p.DeviceNonce, Signature: p.SignDevice(c.key)}, &revealed)
	if err != nil {
		return nil, err
	}
	if !p.VerifyHost(revealed.Signature) {
		return nil, errAnswer
	}
	return &Pairing{Code: p.Code(), HostKey: p.Host, client: c, id: begun.ID}, nil
}

// Wait blocks until somebody has approved the code at the host, and returns the host's
// name for this machine. Errors: ErrExpired, ctx's, or a failure to ask.
func (p *Pairing) Wait(ctx context.Context) (principal string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, pairing.PairingTime, ErrExpired)
	defer cancel()
	for {
		began := time.Now()
		var w pairing.Waited
		err := p.client.post(ctx, pairing.WaitTime+waitMargin, "wait", "", pairing.Wait{ID: p.id}, &w)
		switch {
		case ctx.Err() != nil:
			return "", context.Cause(ctx)
		case refusedAs(err, pairing.CodeExpired), refusedAs(err, pairing.CodeNotFound):
			return "", ErrExpired
		case err != nil && !errors.Is(err, client.ErrUnreachable) && !passes(err): // a host may restart, and a network go away
			return "", err
		case w.Approved:
			return w.Principal, nil
		}
		if !retry.Wait(ctx, pause-min(pause, time.Since(began))) {
			return "", context.Cause(ctx)
		}
	}
}

// Redeem pairs with a pairing token and the host of that key, and returns the host's name
// for this machine. ErrToken means that another token is needed.
func (c *Client) Redeem(ctx context.Context, hostKey ed25519.PublicKey, token string) (principal string, err error) {
	r := pairing.Redemption{Host: hostKey, Device: c.public(), Token: token, Nonce: nonce()}
	var done pairing.Redeemed
	err = c.post(ctx, requestTime, "redeem", token, pairing.Redeem{DeviceKey: r.Device, Nonce: r.Nonce, Signature: r.SignDevice(c.key)}, &done)
	switch {
	case refusedAs(err, pairing.CodeWrongToken):
		return "", ErrToken
	case err != nil:
		return "", err
	case !bytes.Equal(done.HostKey, hostKey):
		return "", ErrIdentity
	case !r.VerifyHost(done.Signature):
		return "", errAnswer
	}
	return done.Principal, nil
}

// Session proves to the host with that key that this is the machine with which it paired.
// It returns a token for one connection, which must be opened within a minute. Errors:
// ErrRevoked, ErrIdentity, or a failure to ask.
func (c *Client) Session(ctx context.Context, hostKey ed25519.PublicKey) (token string, err error) {
	s, answer, err := c.answer(ctx, hostKey, pairing.ForSession)
	if err != nil {
		return "", err
	}
	var opened pairing.Opened
	if err := c.post(ctx, requestTime, "session", "", answer, &opened); err != nil {
		return "", revoked(err)
	}
	if !s.VerifyToken(opened.Token, opened.Signature) {
		return "", ErrIdentity
	}
	return opened.Token, nil
}

// Leave makes the host forget this machine's key.
func (c *Client) Leave(ctx context.Context, hostKey ed25519.PublicKey) error {
	_, answer, err := c.answer(ctx, hostKey, pairing.ForLeaving)
	if err != nil {
		return err
	}
	return revoked(c.post(ctx, requestTime, "leave", "", answer, &struct{}{}))
}

// answer asks for a challenge and answers it.
func (c *Client) answer(ctx context.Context, hostKey ed25519.PublicKey, why pairing.Purpose) (pairing.Session, pairing.Answer, error) {
	s := pairing.Session{Host: hostKey, Device: c.public(), Nonce: nonce()}
	var asked pairing.Challenge
	if err := c.post(ctx, requestTime, "challenge", "", pairing.Ask{DeviceKey: s.Device}, &asked); err != nil {
		return s, pairing.Answer{}, revoked(err)
	}
	if !bytes.Equal(asked.HostKey, hostKey) {
		return s, pairing.Answer{}, fmt.Errorf("%w: its key is %s", ErrIdentity, pairing.Fingerprint(asked.HostKey))
	}
	s.Challenge, s.Time = asked.Challenge, asked.Time
	return s, pairing.Answer{DeviceKey: s.Device, Challenge: s.Challenge, Nonce: s.Nonce, Signature: s.Sign(c.key, why)}, nil
}

func nonce() []byte {
	n := make([]byte, pairing.NonceSize)
	rand.Read(n) // never fails, see crypto/rand
	return n
}

// post is do with a POST request and a bound on its time.
func (c *Client) post(ctx context.Context, within time.Duration, what, token string, in, out any) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return c.do(ctx, http.MethodPost, pairing.Path+what, token, in, out)
}

// do sends in to a path of the host and decodes the answer into out. Its errors contain
// neither a token nor the URL.
func (c *Client) do(ctx context.Context, method, path, token string, in, out any) error {
	var body io.Reader = http.NoBody
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return unreachable(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, pairing.MaxMessage+1))
	if err != nil {
		return unreachable(err)
	}
	if resp.StatusCode != http.StatusOK {
		r := &refusedError{status: resp.StatusCode}
		_ = jsonspan.Unmarshal(data, &r.refusal) // an invalid one has no code
		return r
	}
	if len(data) > pairing.MaxMessage || jsonspan.Unmarshal(data, out) != nil {
		return errAnswer
	}
	return nil
}
