package localclient

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tether/agent/localapi"
	"tether/internal/jsonspan"
)

// List returns all terminals: running ones, the newest first, then exited ones, the last
// to exit first.
func (c *Client) List(ctx context.Context) (localapi.TerminalList, error) {
	return ask[localapi.TerminalList](ctx, c, http.MethodGet, "/v1/terminals", nil)
}

// ListPorts does what List does, and adds the ports on which the terminals' programs
// listen, if the system tells them.
func (c *Client) ListPorts(ctx context.Context) (localapi.TerminalList, error) {
	return ask[localapi.TerminalList](ctx, c, http.MethodGet, "/v1/terminals?ports=1", nil)
}

// ListChanges does what ListPorts does, and says in which checkouts files have changed.
func (c *Client) ListChanges(ctx context.Context) (localapi.TerminalList, error) {
	return ask[localapi.TerminalList](ctx, c, http.MethodGet, "/v1/terminals?ports=1&changes=1", nil)
}

// Spawn starts a terminal. It refuses a request that the daemon does not understand
// because it is older than this program.
func (c *Client) Spawn(ctx context.Context, r localapi.SpawnRequest) (localapi.Terminal, error) {
	if r.Feed {
		if err := c.needs(ctx, localapi.FeatureFeed, "would change input that comes from a pipe or file"); err != nil {
			return localapi.Terminal{}, err
		}
	}
	if err := c.needsBytes(ctx, r.Pack()); err != nil {
		return localapi.Terminal{}, err
	}
	path := "/v1/terminals"
	if r.Attaches {
		path += "?attaches=1"
		c = c.upgradable()
	}
	return ask[localapi.Terminal](ctx, c, http.MethodPost, path, r)
}

// Find returns the terminal that ref names.
func (c *Client) Find(ctx context.Context, ref string) (localapi.Terminal, error) {
	return ask[localapi.Terminal](ctx, c, http.MethodGet, terminalPath(ref, ""), nil)
}

// Kill ends the terminal's whole process tree and returns it with its exit.
func (c *Client) Kill(ctx context.Context, ref string) (localapi.Terminal, error) {
	return ask[localapi.Terminal](ctx, c, http.MethodPost, terminalPath(ref, "/kill"), struct{}{})
}

// Promote gives an agent's terminal to the person.
func (c *Client) Promote(ctx context.Context, ref string) (localapi.Terminal, error) {
	return ask[localapi.Terminal](ctx, c, http.MethodPost, terminalPath(ref, "/promote"), struct{}{})
}

// Commands returns the commands of a terminal whose shell reports them.
func (c *Client) Commands(ctx context.Context, ref string) (localapi.CommandList, error) {
	return ask[localapi.CommandList](ctx, c, http.MethodGet, terminalPath(ref, "/commands"), nil)
}

// Ports returns the ports on which the programs of a terminal listen.
func (c *Client) Ports(ctx context.Context, ref string) (localapi.Ports, error) {
	t, err := ask[localapi.Terminal](ctx, c, http.MethodGet, terminalPath(ref, "?ports=1"), nil)
	p := localapi.Ports{SchemaVersion: localapi.SchemaVersion, ID: t.ID, Ports: []localapi.UserPort{}}
	for _, l := range t.Listening {
		p.Ports = append(p.Ports, localapi.UserPort{Listening: l})
	}
	return p, err
}

// AllPorts returns the ports on which this user's programs listen.
func (c *Client) AllPorts(ctx context.Context) (localapi.Ports, error) {
	return ask[localapi.Ports](ctx, c, http.MethodGet, "/v1/ports", nil)
}

// UnseenPorts returns those of AllPorts whose programs are in no running terminal.
func (c *Client) UnseenPorts(ctx context.Context) (localapi.Ports, error) {
	return ask[localapi.Ports](ctx, c, http.MethodGet, "/v1/ports?unseen=1", nil)
}

// Screen returns a terminal's present screen, its rows also with colours if requested.
func (c *Client) Screen(ctx context.Context, ref string, colours bool) (localapi.Screen, error) {
	path := terminalPath(ref, "/screen")
	if colours {
		path += "?colours=1"
	}
	return ask[localapi.Screen](ctx, c, http.MethodGet, path, nil)
}

// WaitOptions are the conditions of Wait, which ends when the first of them is met. The
// terminal's exit always ends a wait.
type WaitOptions struct {
	Pattern string        // RE2 regular expression that a line of output must match
	Idle    time.Duration // how long nothing must be printed
	Command bool          // the shell in it runs no command
	// Verified lets only commands end a wait for Command whose marks carried the
	// terminal's nonce.
	Verified bool
	Port     int           // TCP port of the loopback interface that must be open
	URL      string        // http or https URL of the loopback interface that must answer with 2xx
	Settle   time.Duration // how long a line that may still change must stay the same to match; 0 means 200 ms, negative no time at all
	New      bool          // only later output and commands count
	Timeout  time.Duration // 0 means none
}

// Wait returns when a condition is met, the terminal has exited, or the timeout is over.
// Reason in the answer says which.
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
	return ask[localapi.Waited](ctx, c, http.MethodGet, terminalPath(ref, "/wait")+"?"+q.Encode(), nil)
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
	return ask[localapi.ProblemList](ctx, c, http.MethodGet, terminalPath(ref, "/problems")+"?"+o.query(), nil)
}

// Digest returns a summary of a terminal's output.
func (c *Client) Digest(ctx context.Context, ref string, raw bool) (localapi.Digest, error) {
	return ask[localapi.Digest](ctx, c, http.MethodGet, terminalPath(ref, "/digest")+"?"+ProblemOptions{Raw: raw}.query(), nil)
}

// Fetch fetches a page of a server that runs in the terminal. It takes some 30 s at most.
func (c *Client) Fetch(ctx context.Context, ref string, r localapi.FetchRequest) (localapi.Fetched, error) {
	return ask[localapi.Fetched](ctx, c, http.MethodPost, terminalPath(ref, "/fetch"), r)
}

// Lend lends the terminal to a host.
func (c *Client) Lend(ctx context.Context, ref string, r localapi.LendRequest) (localapi.Terminal, error) {
	return ask[localapi.Terminal](ctx, c, http.MethodPost, terminalPath(ref, "/lend"), r)
}

// Unlend ends the lending of the terminal to that host, or to all if it is "".
func (c *Client) Unlend(ctx context.Context, ref, host string) (localapi.Terminal, error) {
	return ask[localapi.Terminal](ctx, c, http.MethodPost, terminalPath(ref, "/unlend"), localapi.UnlendRequest{Host: host})
}

// UnlendFrom makes the names in from lose the right to watch the terminal at that host,
// or at all hosts if host is "".
func (c *Client) UnlendFrom(ctx context.Context, ref, host string, from []string) (localapi.Terminal, error) {
	return ask[localapi.Terminal](ctx, c, http.MethodPost, terminalPath(ref, "/unlend"), localapi.UnlendRequest{Host: host, From: from})
}

// UnlendPorts closes ports of the terminal at that host, or at all hosts if host is "".
func (c *Client) UnlendPorts(ctx context.Context, ref, host string, ports []string) (localapi.Terminal, error) {
	return ask[localapi.Terminal](ctx, c, http.MethodPost, terminalPath(ref, "/unlend"), localapi.UnlendRequest{Host: host, Ports: ports})
}

// UnlendAll does what Unlend does, for every terminal. It returns the terminals that were
// lent.
func (c *Client) UnlendAll(ctx context.Context, host string) (localapi.TerminalList, error) {
	return ask[localapi.TerminalList](ctx, c, http.MethodPost, "/v1/unlend", localapi.UnlendRequest{Host: host})
}

// Share makes a link with which a guest watches the terminal.
func (c *Client) Share(ctx context.Context, ref string, r localapi.ShareRequest) (localapi.NewShare, error) {
	return ask[localapi.NewShare](ctx, c, http.MethodPost, terminalPath(ref, "/share"), r)
}

// ShareHere makes a link at r.Here. The link ends with ctx, and when the returned
// function returns: it waits for the end, and must be called once. Its error is nil if
// the link's time was up or somebody has ended it, otherwise ctx's or ErrDropped.
func (c *Client) ShareHere(ctx context.Context, ref string, r localapi.ShareRequest) (made localapi.NewShare, wait func() error, err error) {
	resp, err := c.send(ctx, http.MethodPost, terminalPath(ref, "/share"), r)
	if err != nil {
		return made, nil, err
	}
	answers := bufio.NewReader(resp.Body)
	answer := func(into any) error {
		line, err := answers.ReadBytes('\n')
		if err != nil {
			return err
		}
		return jsonspan.Unmarshal(line, into)
	}
	if err := answer(&made); err != nil {
		resp.Body.Close()
		return made, nil, fmt.Errorf("the daemon's answer: %w", err)
	}
	return made, func() error {
		defer resp.Body.Close()
		var end localapi.ShareEnd
		if err := answer(&end); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil || !end.Ended {
			return ErrDropped
		}
		return nil
	}, nil
}

// Shares lists the links, without their secrets.
func (c *Client) Shares(ctx context.Context) ([]localapi.Share, error) {
	all, err := ask[localapi.Shares](ctx, c, http.MethodGet, "/v1/shares", nil)
	return all.Shares, err
}

// Unshare ends the link with that id.
func (c *Client) Unshare(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/v1/shares/"+segment(id), nil)
}
