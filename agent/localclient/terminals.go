package localclient

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tether/agent/localapi"
)

// List returns all terminals: running ones, the newest first, then exited ones, the last to exit first.
func (c *Client) List(ctx context.Context) (localapi.TerminalList, error) {
	var l localapi.TerminalList
	return l, c.do(ctx, http.MethodGet, "/v1/terminals", nil, &l)
}

// ListPorts does what List does, and adds the ports on which the terminals' programs listen, if the system tells them.
func (c *Client) ListPorts(ctx context.Context) (localapi.TerminalList, error) {
	var l localapi.TerminalList
	return l, c.do(ctx, http.MethodGet, "/v1/terminals?ports=1", nil, &l)
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

// Kill ends the terminal's whole process tree and returns it with its exit.
func (c *Client) Kill(ctx context.Context, ref string) (localapi.Terminal, error) {
	var t localapi.Terminal
	return t, c.do(ctx, http.MethodPost, terminalPath(ref, "/kill"), struct{}{}, &t)
}

// Promote gives an agent's terminal to the person.
func (c *Client) Promote(ctx context.Context, ref string) (localapi.Terminal, error) {
	var t localapi.Terminal
	return t, c.do(ctx, http.MethodPost, terminalPath(ref, "/promote"), struct{}{}, &t)
}

// Commands returns the commands of a terminal whose shell reports them.
func (c *Client) Commands(ctx context.Context, ref string) (localapi.CommandList, error) {
	var l localapi.CommandList
	return l, c.do(ctx, http.MethodGet, terminalPath(ref, "/commands"), nil, &l)
}

// Ports returns the ports on which the programs of a terminal listen.
func (c *Client) Ports(ctx context.Context, ref string) (localapi.Ports, error) {
	var p localapi.Ports
	return p, c.do(ctx, http.MethodGet, terminalPath(ref, "/ports"), nil, &p)
}

// Screen returns a terminal's present screen, its rows also with colours if requested.
func (c *Client) Screen(ctx context.Context, ref string, colours bool) (localapi.Screen, error) {
	path := terminalPath(ref, "/screen")
	if colours {
		path += "?colours=1"
	}
	var s localapi.Screen
	return s, c.do(ctx, http.MethodGet, path, nil, &s)
}

// WaitOptions are the conditions of Wait, which ends when the first of them is met. The terminal's exit always ends a wait.
type WaitOptions struct {
	Pattern string        // RE2 regular expression that a line of output must match
	Idle    time.Duration // how long nothing must be printed
	Command bool          // the shell in it runs no command
	// Verified lets only commands end a wait for Command whose marks carried the terminal's nonce.
	Verified bool
	Port     int           // TCP port of the loopback interface that must be open
	URL      string        // http or https URL of the loopback interface that must answer with 2xx
	Settle   time.Duration // how long a line that may still change must stay the same to match; 0 means 200 ms, negative no time at all
	New      bool          // only later output and commands count
	Timeout  time.Duration // 0 means none
}

// Wait returns when a condition is met, the terminal has exited, or the timeout is over. Reason in the answer says which.
func (c *Client) Wait(ctx context.Context, ref string, o WaitOptions) (localapi.Waited, error) {
	q := url.Values{}
	set := func(name, value string, is bool) {
		if is {
			q.Set(name, value)
		}
	}
	set("pattern", o.Pattern, o.Pattern != "")
	set("url", o.URL, o.URL != "")
	set("settle_ms", strconv.FormatInt(max(o.Settle.Milliseconds(), 0), 10), o.Settle != 0)
	set("command", "1", o.Command)
	set("verified", "1", o.Verified)
	set("new", "1", o.New)
	set("idle_ms", strconv.FormatInt(max(o.Idle.Milliseconds(), 1), 10), o.Idle > 0)
	set("timeout_ms", strconv.FormatInt(max(o.Timeout.Milliseconds(), 1), 10), o.Timeout > 0)
	set("port", strconv.Itoa(o.Port), o.Port != 0)
	var w localapi.Waited
	return w, c.do(ctx, http.MethodGet, terminalPath(ref, "/wait")+"?"+q.Encode(), nil, &w)
}

// ProblemOptions selects problems.
type ProblemOptions struct {
	Since int64 // cursor of an earlier answer, after which problems count; 0 means all
	Max   int   // most problems in the answer; 0 means all
	Raw   bool  // secrets are not masked
}

func (o ProblemOptions) query() string {
	q := url.Values{}
	if o.Since > 0 {
		q.Set("since", strconv.FormatInt(o.Since, 10))
	}
	if o.Max > 0 {
		q.Set("max", strconv.Itoa(o.Max))
	}
	if o.Raw {
		q.Set("raw", "1")
	}
	return q.Encode()
}

// Problems returns the problems that tools report in a terminal.
func (c *Client) Problems(ctx context.Context, ref string, o ProblemOptions) (localapi.ProblemList, error) {
	var l localapi.ProblemList
	return l, c.do(ctx, http.MethodGet, terminalPath(ref, "/problems")+"?"+o.query(), nil, &l)
}

// Digest returns a summary of a terminal's output.
func (c *Client) Digest(ctx context.Context, ref string, raw bool) (localapi.Digest, error) {
	var d localapi.Digest
	return d, c.do(ctx, http.MethodGet, terminalPath(ref, "/digest")+"?"+ProblemOptions{Raw: raw}.query(), nil, &d)
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

// UnlendFrom makes the names in from lose the right to watch the terminal at that host, or at all hosts if host is "".
func (c *Client) UnlendFrom(ctx context.Context, ref, host string, from []string) (localapi.Terminal, error) {
	var t localapi.Terminal
	return t, c.do(ctx, http.MethodPost, terminalPath(ref, "/unlend"), localapi.UnlendRequest{Host: host, From: from}, &t)
}

// UnlendAll does what Unlend does, for every terminal. It returns the terminals that were lent.
func (c *Client) UnlendAll(ctx context.Context, host string) (localapi.TerminalList, error) {
	var l localapi.TerminalList
	return l, c.do(ctx, http.MethodPost, "/v1/unlend", localapi.UnlendRequest{Host: host}, &l)
}

// Share makes a link with which a guest watches the terminal.
func (c *Client) Share(ctx context.Context, ref string, r localapi.ShareRequest) (localapi.NewShare, error) {
	var n localapi.NewShare
	return n, c.do(ctx, http.MethodPost, terminalPath(ref, "/share"), r, &n)
}

// Shares lists the links, without their secrets.
func (c *Client) Shares(ctx context.Context) ([]localapi.Share, error) {
	var all localapi.Shares
	err := c.do(ctx, http.MethodGet, "/v1/shares", nil, &all)
	return all.Shares, err
}

// Unshare ends the link with that id.
func (c *Client) Unshare(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/v1/shares/"+segment(id), nil, &struct{}{})
}
