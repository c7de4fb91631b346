// Package localclient is the client of the local door, with which the command line talks
// to the daemon. It finds the daemon or starts it, waits while a daemon is replaced by
// the next, and notices if a daemon does not answer. agent/localapi has the types.
//
//	c := localclient.New(socket)
//	defer c.Close()
//	terminals, err := c.List(ctx)
package localclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"tether/agent/localapi"
	"tether/internal/jsonspan"
	"tether/internal/retry"
	"tether/platform/ipc"
)

// ErrNotRunning says that no daemon listens on the socket. errors.Is finds it in the
// errors of all methods of Client.
var ErrNotRunning = ipc.ErrNotRunning

// ErrDropped says that the daemon has ended the connection, although the terminal may
// still run. ErrStopped is the same of a daemon that was shut down in order.
var (
	ErrDropped = errors.New("the daemon closed the connection")
	ErrStopped = fmt.Errorf("%w: it was shut down", ErrDropped)
)

// Client talks to the daemon behind a socket. It is safe for concurrent use. Methods
// block until the daemon has answered or ctx ends. If the daemon refuses a request, the
// error is a *localapi.Error.
type Client struct {
	socket string
	http   http.Client
	header http.Header // headers of every request

	patient func(silent bool) // see Patient; if nil, requests fail with a SilentError
	after   time.Duration     // silentAfter, except in tests
	sign    time.Duration     // signWithin, except in tests
}

// New returns a client for the socket at the absolute path. It does not connect yet.
// Close closes its idle connections.
func New(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return dialPatiently(ctx, socket) }
	return &Client{socket: socket, after: silentAfter, sign: signWithin, http: http.Client{
		Transport:     &http.Transport{DialContext: dial, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// As returns a client that acts as the agent called principal, whose name has 1 to 64 of
// the characters A-Z a-z 0-9 . _ : @ -. An agent may do less than the person: it sees its
// own terminals and the person's, and starts terminals in the background. The client
// shares its connections with c, so that closing one of the two is enough.
func (c *Client) As(principal string) *Client {
	as := *c
	as.header = http.Header{localapi.PrincipalHeader: {principal}}
	return &as
}

// With returns a client that sends one of the person's tokens, as proof that the person
// makes the requests. "" means no token. The client shares its connections with c.
func (c *Client) With(token string) *Client {
	with := *c
	if token != "" {
		with.header = http.Header{"Authorization": {"Bearer " + token}}
	}
	return &with
}

// upgradable returns a client whose requests leave a connection that Attach uses again:
// net/http keeps those on which a protocol was upgraded apart from others. The daemon
// upgrades only where it is asked for a stream. A further connection costs a tenth of the
// time until a window's shell is there.
func (c *Client) upgradable() *Client {
	u := *c
	u.header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}}
	maps.Copy(u.header, c.header)
	return &u
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// HTTP returns an HTTP client that sends requests to the daemon as c does, for paths
// without a method here, such as /mcp and /pty. It shares its connections with c, so that
// closing c is enough.
func (c *Client) HTTP() *http.Client {
	h := c.http
	h.Transport = withHeader{c.http.Transport, c.header}
	return &h
}

// withHeader is an http.RoundTripper that adds headers to each request.
type withHeader struct {
	http.RoundTripper
	header http.Header
}

// RoundTrip implements http.RoundTripper.
func (t withHeader) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	maps.Copy(r.Header, t.header)
	return t.RoundTripper.RoundTrip(r)
}

// ask sends a request as send does, and decodes the answer.
func ask[T any](ctx context.Context, c *Client, method, path string, in any) (out T, err error) {
	resp, err := c.send(ctx, method, path, in)
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	if err := jsonspan.Decode(resp.Body, &out); err != nil {
		return out, fmt.Errorf("the daemon's answer: %w", err)
	}
	return out, nil
}

// do is ask for an answer that says nothing.
func (c *Client) do(ctx context.Context, method, path string, in any) error {
	_, err := ask[struct{}](ctx, c, method, path, in)
	return err
}

// send sends a request, with in as JSON unless it is nil, and returns the daemon's answer
// if it is not an error.
func (c *Client) send(ctx context.Context, method, path string, in any) (*http.Response, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	var body []byte
	if in != nil {
		if what := localapi.NotText(in); what != "" {
			return nil, localapi.BadRequest("%s is not UTF-8, and the daemon takes only UTF-8 there", what)
		}
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, err
		}
	}
	for end := time.Now().Add(handOverTimeout); ; {
		resp, err := c.roundTrip(ctx, method, path, body)
		if err == nil || !repeatable(ctx, method, err) || time.Now().After(end) {
			return resp, err
		}
		if !retry.Wait(ctx, secondLook) {
			return nil, ctx.Err()
		}
	}
}

// repeatable reports whether a request that failed is to be sent again: the daemon is
// being replaced, or it has ended without an answer on a new connection, and the request
// changes nothing.
func repeatable(ctx context.Context, method string, err error) bool {
	if answer, ok := errors.AsType[*localapi.Error](err); ok {
		return answer.Code == localapi.CodeClosing
	}
	_, silent := errors.AsType[*SilentError](err)
	return !silent && !errors.Is(err, ErrNotRunning) && ctx.Err() == nil && method == http.MethodGet
}

// roundTrip sends a request once. Until the answer begins, it watches whether the daemon
// is alive.
func (c *Client) roundTrip(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	asking, cancel := context.WithCancel(ctx)
	req, err := http.NewRequestWithContext(asking, method, "http://"+localapi.Host+path, bytes.NewReader(body))
	if err != nil {
		cancel()
		return nil, err
	}
	maps.Copy(req.Header, c.header)
	if len(body) > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	var silent atomic.Bool
	say := c.patient
	if say == nil {
		say = func(bool) { silent.Store(true); cancel() }
	}
	stop := c.Watch(asking, nil, say)
	resp, err := c.http.Do(req)
	stop()
	switch {
	case err != nil && silent.Load() && ctx.Err() == nil:
		err = &SilentError{Changing: method != http.MethodGet}
	case err != nil:
		err = plain(err)
	case resp.StatusCode != http.StatusOK:
		err = errorIn(resp)
		resp.Body.Close()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	if c.patient != nil {
		c.patient(false)
	}
	resp.Body = &lastRead{resp.Body, cancel}
	return resp, nil
}

// lastRead is the body of an answer; closing it ends the request's context.
type lastRead struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (l *lastRead) Close() error {
	defer l.cancel()
	return l.ReadCloser.Close()
}

// Has reports whether the daemon has the feature.
func (c *Client) Has(ctx context.Context, feature string) (bool, error) {
	resp, err := c.send(ctx, http.MethodGet, "/v1/whoami", nil)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body) // so that the connection is used again
	return slices.Contains(strings.Split(resp.Header.Get(localapi.FeaturesHeader), ", "), feature), nil
}

// needs returns an error unless the daemon has the feature. effect says what happens
// without it.
func (c *Client) needs(ctx context.Context, feature, effect string) error {
	if has, err := c.Has(ctx, feature); has || err != nil {
		return err
	}
	return &localapi.Error{Code: localapi.CodeBadRequest, Message: "the running daemon is older than this program and " + effect, Hint: replaceHint}
}

// replaceHint is what to do about a daemon that is older than this program.
const replaceHint = "tether daemon --replace --background; terminals run on"

// needsBytes returns an error if a request has what, which is not UTF-8, and the daemon
// does not know fields for bytes.
func (c *Client) needsBytes(ctx context.Context, what string) error {
	if what == "" {
		return nil
	}
	return c.needs(ctx, localapi.FeatureBytes, "would change "+what+", which is not UTF-8")
}

const (
	// handOverTimeout is how long a client waits while a daemon starts, or is replaced by
	// another.
	handOverTimeout = 5 * time.Second
	// secondLook is after what time a client looks again, in case it looked between the
	// end of one daemon and the start of the next.
	secondLook = 10 * time.Millisecond
)

// dialPatiently connects to the daemon. If a daemon is about to start, it waits for that
// daemon.
func dialPatiently(ctx context.Context, socket string) (net.Conn, error) {
	for end, looks := time.Now().Add(handOverTimeout), 0; ; looks++ {
		conn, err := ipc.Dial(ctx, socket)
		if !errors.Is(err, ipc.ErrNotRunning) || looks > 0 && !locked(socket) || time.Now().After(end) {
			return conn, err
		}
		if !retry.Wait(ctx, secondLook) {
			return nil, ctx.Err()
		}
	}
}

// locked reports whether another process holds NextName or LockName, so that a daemon
// starts or ends. It looks at NextName first, because the next daemon holds that file
// before the previous one releases LockName. A process that replaces the daemon does not
// wait for itself.
func locked(socket string) bool {
	for _, name := range []string{localapi.NextName, localapi.LockName} {
		lock, err := ipc.Lock(filepath.Join(filepath.Dir(socket), name))
		if held, ok := errors.AsType[*ipc.LockedError](err); ok && (name == localapi.LockName || held.Pid != os.Getpid()) {
			return true
		}
		if err == nil {
			lock.Close()
		}
	}
	return false
}

// plain returns the error without the method and made-up URL that net/http puts in front.
func plain(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// errorIn reads the error in the daemon's answer.
func errorIn(resp *http.Response) error {
	var answer struct {
		Error *localapi.Error `json:"error"`
	}
	if err := jsonspan.Decode(io.LimitReader(resp.Body, localapi.MaxBody), &answer); err != nil || answer.Error == nil {
		return &localapi.Error{Code: localapi.CodeInternal, Message: "the daemon answered " + resp.Status}
	}
	e := answer.Error
	if has := resp.Header.Get(localapi.FeaturesHeader); has != "" && e.Hint == "" && e.Code == localapi.CodeBadRequest && !strings.HasPrefix(has, localapi.Features) {
		e.Hint = "the running daemon is older than this program: " + replaceHint
	}
	return e
}

// segment returns name as one segment of a path. Dots are escaped because servers
// interpret the segments "." and "..".
func segment(name string) string { return strings.ReplaceAll(url.PathEscape(name), ".", "%2E") }

// checkPath returns an error for a path that contains a name that cannot be part of a
// path: "", or "/".
func checkPath(path string) error {
	path, _, _ = strings.Cut(path, "?")
	for s := range strings.SplitSeq(path[1:], "/") {
		if s == "" || s == "%2F" {
			name, _ := url.PathUnescape(s) // cannot fail for these two
			return &localapi.Error{Code: localapi.CodeBadRequest, Message: fmt.Sprintf("%q is not a name", name), Hint: "give an id or a name; tether ls lists them"}
		}
	}
	return nil
}

func terminalPath(ref, rest string) string { return "/v1/terminals/" + segment(ref) + rest }
