package local

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
	"strconv"
	"strings"
	"time"

	"tether/agent/localapi"
	"tether/platform/ipc"
)

// ErrNotRunning: no daemon answers at the socket. errors.Is finds it in the errors of all methods of Client.
var ErrNotRunning = ipc.ErrNotRunning

// Client talks to the daemon behind a socket. It is safe for concurrent use. Methods block until the daemon has answered or ctx ends; a
// refusal of the daemon is an *Error.
type Client struct {
	socket string
	http   http.Client
	header http.Header // of every request

	patient func(silent bool) // see Patient; nil: requests fail with a SilentError
	after   time.Duration     // silentAfter; another one in tests
	sign    time.Duration     // signWithin; the same
}

// NewClient returns a client for the socket at the absolute path. It does not connect yet. Close gives its idle connections back.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return dialPatiently(ctx, socket) }
	return &Client{socket: socket, after: silentAfter, sign: signWithin, http: http.Client{
		Transport:     &http.Transport{DialContext: dial, DisableCompression: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// As returns a client that acts as the agent called principal, 1 to 64 of the characters A-Z a-z 0-9 . _ : @ -. It may do less: see its own
// terminals and the person's, and start ones in the background. It shares its connections with c, so that closing one is enough.
func (c *Client) As(principal string) *Client {
	as := *c
	as.header = http.Header{localapi.PrincipalHeader: {principal}}
	return &as
}

// With returns a client that sends a token of the person's, which is a sign of them, see [Tokens]. "" sends none. It shares its connections
// with c.
func (c *Client) With(token string) *Client {
	with := *c
	if token != "" {
		with.header = http.Header{"Authorization": {"Bearer " + token}}
	}
	return &with
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status asks for the daemon's status. The answer does not wait for any host.
func (c *Client) Status(ctx context.Context) (localapi.Status, error) {
	var s localapi.Status
	return s, c.do(ctx, http.MethodGet, "/v1/status", nil, &s)
}

// List returns all terminals: running ones, the newest first, then exited ones, the last to exit first.
func (c *Client) List(ctx context.Context) (localapi.TerminalList, error) {
	var l localapi.TerminalList
	return l, c.do(ctx, http.MethodGet, "/v1/terminals", nil, &l)
}

// Spawn starts a terminal.
func (c *Client) Spawn(ctx context.Context, r localapi.SpawnRequest) (localapi.Terminal, error) {
	var t localapi.Terminal
	return t, c.do(ctx, http.MethodPost, "/v1/terminals", r, &t)
}

// Find returns the terminal that ref names.
func (c *Client) Find(ctx context.Context, ref string) (localapi.Terminal, error) {
	var t localapi.Terminal
	return t, c.do(ctx, http.MethodGet, terminalPath(ref, ""), nil, &t)
}

// Environment returns the environment of an interactive login, as the daemon remembers it or, if refresh, asked anew.
func (c *Client) Environment(ctx context.Context, refresh bool) (localapi.Environment, error) {
	var e localapi.Environment
	if refresh {
		return e, c.do(ctx, http.MethodPost, "/v1/environment", struct{}{}, &e)
	}
	return e, c.do(ctx, http.MethodGet, "/v1/environment", nil, &e)
}

// Commands returns the commands of a terminal whose shell reports them.
func (c *Client) Commands(ctx context.Context, ref string) (localapi.CommandList, error) {
	var l localapi.CommandList
	return l, c.do(ctx, http.MethodGet, terminalPath(ref, "/commands"), nil, &l)
}

// Kill ends the terminal's whole process tree and returns it with its exit.
func (c *Client) Kill(ctx context.Context, ref string) (localapi.Terminal, error) {
	var t localapi.Terminal
	return t, c.do(ctx, http.MethodPost, terminalPath(ref, "/kill"), struct{}{}, &t)
}

// Lend lends the terminal to a host.
func (c *Client) Lend(ctx context.Context, ref string, r localapi.LendRequest) (localapi.Terminal, error) {
	var t localapi.Terminal
	return t, c.do(ctx, http.MethodPost, terminalPath(ref, "/lend"), r, &t)
}

// Unlend ends the lending of the terminal to that host, or to all if it is "".
func (c *Client) Unlend(ctx context.Context, ref, host string) (localapi.Terminal, error) {
	var t localapi.Terminal
	return t, c.do(ctx, http.MethodPost, terminalPath(ref, "/unlend"), localapi.UnlendRequest{Host: host}, &t)
}

// UnlendFrom keeps these names from watching the terminal at that host, or at all if it is "".
func (c *Client) UnlendFrom(ctx context.Context, ref, host string, from []string) (localapi.Terminal, error) {
	var t localapi.Terminal
	return t, c.do(ctx, http.MethodPost, terminalPath(ref, "/unlend"), localapi.UnlendRequest{Host: host, From: from}, &t)
}

// UnlendAll is Unlend for every terminal. It returns those that were lent.
func (c *Client) UnlendAll(ctx context.Context, host string) (localapi.TerminalList, error) {
	var l localapi.TerminalList
	return l, c.do(ctx, http.MethodPost, "/v1/unlend", localapi.UnlendRequest{Host: host}, &l)
}

// Promote makes an agent's terminal the person's.
func (c *Client) Promote(ctx context.Context, ref string) (localapi.Terminal, error) {
	var t localapi.Terminal
	return t, c.do(ctx, http.MethodPost, terminalPath(ref, "/promote"), struct{}{}, &t)
}

// Pair adds a host after asking it once.
func (c *Client) Pair(ctx context.Context, r localapi.PairRequest) (localapi.HostStatus, error) {
	var h localapi.HostStatus
	return h, c.do(ctx, http.MethodPost, "/v1/hosts", r, &h)
}

// Unpair forgets a host.
func (c *Client) Unpair(ctx context.Context, name string) (localapi.Unpaired, error) {
	var u localapi.Unpaired
	return u, c.do(ctx, http.MethodDelete, "/v1/hosts/"+segment(name), nil, &u)
}

// Shutdown asks the daemon to end, with all its terminals. It does not wait.
func (c *Client) Shutdown(ctx context.Context) error {
	return c.do(ctx, http.MethodPost, "/v1/shutdown", struct{}{}, &struct{}{})
}

// ReadOptions selects a part of a terminal's output.
type ReadOptions struct {
	View    string // "text" (default: valid UTF-8 as observers see it), "screen" or "raw"
	Lines   int    // the last this many; 0 means all that is kept
	Command int    // only the output of this command of a shell; 0 means all
	Follow  bool   // go on until the terminal exits, or the command ends
}

// Read returns the terminal's output. The caller must Close it; it ends early when ctx does. If the daemon ends first, the error is
// ErrDropped.
func (c *Client) Read(ctx context.Context, ref string, o ReadOptions) (*Output, error) {
	q := url.Values{}
	if o.View != "" {
		q.Set("view", o.View)
	}
	if o.Lines != 0 {
		q.Set("lines", strconv.Itoa(o.Lines))
	}
	if o.Command != 0 {
		q.Set("command", strconv.Itoa(o.Command))
	}
	if o.Follow {
		q.Set("follow", "1")
	}
	resp, err := c.send(ctx, http.MethodGet, terminalPath(ref, "/output")+"?"+q.Encode(), nil)
	if err != nil {
		return nil, err
	}
	return &Output{resp, o.Follow}, nil
}

// Output is a terminal's output. One goroutine may use it.
type Output struct {
	resp   *http.Response
	follow bool // the terminal's end is distinguished from the daemon's
}

// Masked is the number of masked places in the output read to its end, for an agent.
func (f *Output) Masked() int {
	n, _ := strconv.Atoi(f.resp.Trailer.Get(localapi.MaskedTrailer)) // none is 0
	return n
}

// Read implements io.Reader.
func (f *Output) Read(p []byte) (int, error) {
	n, err := f.resp.Body.Read(p)
	switch {
	case !f.follow:
	case errors.Is(err, io.EOF) && f.resp.Trailer.Get(localapi.DroppedTrailer) != "":
		return n, ErrDropped
	case err != nil && !errors.Is(err, io.EOF) && f.resp.Request.Context().Err() == nil:
		return n, fmt.Errorf("%w: %w", ErrDropped, err)
	}
	return n, err
}

// Close ends the reading.
func (f *Output) Close() error { return f.resp.Body.Close() }

// segment is name as one segment of a path. Dots are escaped because servers take "." and ".." for steps up and down the path.
func segment(name string) string { return strings.ReplaceAll(url.PathEscape(name), ".", "%2E") }

// checkPath refuses a path with a name that no path can hold: "", or "/".
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

// do sends in as JSON unless it is nil, and decodes the answer into out.
func (c *Client) do(ctx context.Context, method, path string, in, out any) error {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	resp, err := c.send(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("the daemon's answer: %w", err)
	}
	return nil
}

// send returns the daemon's answer if it is not an error. A daemon that is being replaced is asked again: the next one answers. It may also
// end silently on a new connection; then only requests that change nothing are repeated.
func (c *Client) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	if err := checkPath(path); err != nil {
		return nil, err
	}
	for end := time.Now().Add(handOverPatience); ; {
		resp, err := c.sendOnce(ctx, method, path, bytes.NewReader(body))
		var answer *localapi.Error
		var silent *SilentError
		answered := err == nil || errors.As(err, &answer) || errors.As(err, &silent) || errors.Is(err, ErrNotRunning) || ctx.Err() != nil
		again := answered && answer != nil && answer.Code == localapi.CodeClosing || !answered && method == http.MethodGet
		if !again || time.Now().After(end) {
			return resp, err
		}
		select {
		case <-time.After(secondLook):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (c *Client) sendOnce(ctx context.Context, method, path string, body io.Reader) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+localapi.Host+path, body)
	if err != nil {
		return nil, err
	}
	maps.Copy(req.Header, c.header)
	if req.ContentLength > 0 {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.roundTrip(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, errorIn(resp)
}

// plain takes away the method and made-up URL that net/http puts in front.
func plain(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// errorIn reads the error that the daemon answered.
func errorIn(resp *http.Response) error {
	var answer struct {
		Error *localapi.Error `json:"error"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, localapi.MaxBody)).Decode(&answer); err != nil || answer.Error == nil {
		return &localapi.Error{Code: localapi.CodeInternal, Message: "the daemon answered " + resp.Status}
	}
	return answer.Error
}
