package localclient

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"time"

	"tether/agent/audit"
	"tether/agent/localapi"
	"tether/internal/jsonspan"
)

// Status asks for the daemon's status. The answer does not wait for any host.
func (c *Client) Status(ctx context.Context) (localapi.Status, error) {
	return ask[localapi.Status](ctx, c, http.MethodGet, "/v1/status", nil)
}

// Environment returns the environment of an interactive login, as the daemon remembers
// it. With refresh, the daemon determines it anew.
func (c *Client) Environment(ctx context.Context, refresh bool) (localapi.Environment, error) {
	if refresh {
		return ask[localapi.Environment](ctx, c, http.MethodPost, "/v1/environment", struct{}{})
	}
	return ask[localapi.Environment](ctx, c, http.MethodGet, "/v1/environment", nil)
}

// Declare starts or ends declared terminals and returns their states after that.
func (c *Client) Declare(ctx context.Context, r localapi.DeclareRequest) (localapi.DeclaredList, error) {
	return ask[localapi.DeclaredList](ctx, c, http.MethodPost, "/v1/declared", r)
}

// HandOver asks the daemon to end and leave its terminals to the next one. It does not
// wait for the end. If the daemon does not know this request, the error is a
// *localapi.Error with CodeNotFound.
func (c *Client) HandOver(ctx context.Context) (localapi.HandOver, error) {
	return ask[localapi.HandOver](ctx, c, http.MethodPost, "/v1/handover", struct{}{})
}

// Shutdown asks the daemon to end with all its terminals. It does not wait for the end.
func (c *Client) Shutdown(ctx context.Context) error {
	return c.do(ctx, http.MethodPost, "/v1/shutdown", struct{}{})
}

// Pair adds a host after one connection to it has succeeded.
func (c *Client) Pair(ctx context.Context, r localapi.PairRequest) (localapi.HostStatus, error) {
	return ask[localapi.HostStatus](ctx, c, http.MethodPost, "/v1/hosts", r)
}

// Offer begins to pair by a code. An offer without an ID says that the host pairs by
// tokens alone, or, if Paired is set, that it is paired already.
func (c *Client) Offer(ctx context.Context, r localapi.PairRequest) (localapi.PairOffer, error) {
	return ask[localapi.PairOffer](ctx, c, http.MethodPost, "/v1/pairings", r)
}

// Finish blocks until the offer with that ID was approved at the host or has expired, or
// ctx ends. The offer is over then.
func (c *Client) Finish(ctx context.Context, id string) (localapi.HostStatus, error) {
	return ask[localapi.HostStatus](ctx, c, http.MethodPost, "/v1/pairings/"+segment(id), struct{}{})
}

// ChangeHost renames the paired host of that name, makes it the default one, switches its
// tools or tries to reach it now.
func (c *Client) ChangeHost(ctx context.Context, name string, change localapi.HostChange) (localapi.HostStatus, error) {
	return ask[localapi.HostStatus](ctx, c, http.MethodPost, "/v1/hosts/"+segment(name), change)
}

// Unpair forgets a host.
func (c *Client) Unpair(ctx context.Context, name string) (localapi.Unpaired, error) {
	return ask[localapi.Unpaired](ctx, c, http.MethodDelete, "/v1/hosts/"+segment(name), nil)
}

// Approvals returns the waiting and expired questions and the grants. If since is not
// nil, it first waits until the list's version is another one, at most for half a minute.
func (c *Client) Approvals(ctx context.Context, since *uint64) (localapi.ApprovalList, error) {
	path := "/v1/approvals"
	if since != nil {
		path += "?since=" + strconv.FormatUint(*since, 10)
	}
	return ask[localapi.ApprovalList](ctx, c, http.MethodGet, path, nil)
}

// Approve answers the question called id. An approval stands for the duration standing.
// If that is 0, it is for this once, or, if the question has expired, for the next few
// minutes.
func (c *Client) Approve(ctx context.Context, id string, allow bool, standing time.Duration) (localapi.Approved, error) {
	req := localapi.ApprovalAnswer{Allow: allow, ForSeconds: int64(standing / time.Second)}
	return ask[localapi.Approved](ctx, c, http.MethodPost, "/v1/approvals/"+segment(id), req)
}

// Revoke ends the approval called id.
func (c *Client) Revoke(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/v1/approvals/"+segment(id), nil)
}

// AuditHead asks for the end of the audit log.
func (c *Client) AuditHead(ctx context.Context) (audit.Head, error) {
	h, err := ask[localapi.AuditHead](ctx, c, http.MethodGet, "/v1/audit/head", nil)
	return h.Head, err
}

// MayRun returns an error if the caller may not start the command itself when an event
// comes.
func (c *Client) MayRun(ctx context.Context, command []string, cwd string) error {
	r := localapi.MayRunRequest{Command: command, Cwd: cwd}
	if err := c.needsBytes(ctx, r.Pack()); err != nil {
		return err
	}
	return c.do(ctx, http.MethodPost, "/v1/events/command", r)
}

// Sandbox asks how to run an agent's own program in its sandbox; see [Client.As].
func (c *Client) Sandbox(ctx context.Context, r localapi.SandboxRequest) (localapi.SandboxReply, error) {
	if err := c.needsBytes(ctx, r.Pack()); err != nil {
		return localapi.SandboxReply{}, err
	}
	out, err := ask[localapi.SandboxReply](ctx, c, http.MethodPost, "/v1/sandbox", r)
	jsonspan.Unpack(out.Command, out.CommandBytes)
	return out, err
}

// Whoami asks for this program's identity.
func (c *Client) Whoami(ctx context.Context) (localapi.Whoami, error) {
	return ask[localapi.Whoami](ctx, c, http.MethodGet, "/v1/whoami", nil)
}

// Notifications asks for the rules and receivers of notifications. With reach, the daemon
// asks each receiver whether it is there.
func (c *Client) Notifications(ctx context.Context, reach bool) (localapi.Notifications, error) {
	path := "/v1/notify"
	if reach {
		path += "?reach=1"
	}
	return ask[localapi.Notifications](ctx, c, http.MethodGet, path, nil)
}

// AddReceiver gives a URL for notifications a name, or replaces the one of that name.
func (c *Client) AddReceiver(ctx context.Context, name string, r localapi.ReceiverRequest) (localapi.NotifyReceiver, error) {
	return ask[localapi.NotifyReceiver](ctx, c, http.MethodPost, "/v1/notify/"+segment(name), r)
}

// RemoveReceiver forgets a URL for notifications.
func (c *Client) RemoveReceiver(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, "/v1/notify/"+segment(name), nil)
}

// TestReceiver sends a message to a receiver, or to the desktop, once.
func (c *Client) TestReceiver(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodPost, "/v1/notify/"+segment(name)+"/test", struct{}{})
}

// Tokens lists the tokens, oldest first.
func (c *Client) Tokens(ctx context.Context) (localapi.TokenList, error) {
	return ask[localapi.TokenList](ctx, c, http.MethodGet, "/v1/tokens", nil)
}

// CreateToken makes a token for the agent called principal.
func (c *Client) CreateToken(ctx context.Context, principal string) (localapi.NewToken, error) {
	return ask[localapi.NewToken](ctx, c, http.MethodPost, "/v1/tokens", localapi.TokenRequest{Principal: principal})
}

// CreatePersonToken makes a token for the person's scripts. name distinguishes it from
// other tokens.
func (c *Client) CreatePersonToken(ctx context.Context, name string) (localapi.NewToken, error) {
	return ask[localapi.NewToken](ctx, c, http.MethodPost, "/v1/tokens", localapi.TokenRequest{Principal: name, Person: true})
}

// UserToken returns the token that acts as the person.
func (c *Client) UserToken(ctx context.Context) (localapi.NewToken, error) {
	return ask[localapi.NewToken](ctx, c, http.MethodPost, "/v1/token", struct{}{})
}

// RevokeToken revokes the token of that name and closes all connections that were opened
// with it. "user" is the token that acts as the person; it is replaced by another.
func (c *Client) RevokeToken(ctx context.Context, principal string) error {
	return c.do(ctx, http.MethodDelete, "/v1/tokens/"+segment(principal), nil)
}

// LogLevel returns the daemon's log level. If level is not "", it sets it first.
func (c *Client) LogLevel(ctx context.Context, level string) (localapi.LogLevel, error) {
	if level != "" {
		return ask[localapi.LogLevel](ctx, c, http.MethodPost, "/v1/log", localapi.LogLevelRequest{Level: level})
	}
	return ask[localapi.LogLevel](ctx, c, http.MethodGet, "/v1/log", nil)
}

// Health asks whether the daemon works without problems.
func (c *Client) Health(ctx context.Context) (localapi.Health, error) {
	return ask[localapi.Health](ctx, c, http.MethodGet, "/v1/health", nil)
}

// Metrics returns the daemon's counters, in Prometheus' text format.
func (c *Client) Metrics(ctx context.Context) ([]byte, error) { return c.text(ctx, "/v1/metrics") }

// Profile returns a profile of the daemon's runtime: heap, goroutine and so on. debug 0
// is for go tool pprof, 1 and 2 are text.
func (c *Client) Profile(ctx context.Context, name string, debug int) ([]byte, error) {
	return c.text(ctx, "/debug/pprof/"+name+"?debug="+strconv.Itoa(debug))
}

// maxText bounds an answer that is not JSON, in bytes.
const maxText = 16 << 20

func (c *Client) text(ctx context.Context, path string) ([]byte, error) {
	resp, err := c.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(io.LimitReader(resp.Body, maxText))
}
