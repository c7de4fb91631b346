package local

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/agenttools"
)

// WaitOptions are the conditions of Wait, which ends at the first. The exit ends a wait in any case.
type WaitOptions struct {
	Pattern string        // RE2, that a line of output must match
	Idle    time.Duration // no output for so long
	Command bool          // the shell in it runs no command
	// Verified lets only commands end a wait for Command whose marks carried the terminal's nonce.
	Verified bool
	Port     int           // of the loopback interface, open
	URL      string        // http or https, of the loopback interface, that answers with 2xx
	Settle   time.Duration // how long a line that may still change must stand to match; 0 means 200 ms, negative any line
	New      bool          // only later output and commands count
	Timeout  time.Duration // 0 means none
}

// maxWait bounds a wait's numbers.
const maxWait = 7 * 24 * time.Hour

// wait answers when a condition is met. It waits as MCP's wait_terminal does, but without a time limit of its own.
func (s *Server) wait(w http.ResponseWriter, r *http.Request) error {
	h, err := s.find(r)
	if err != nil {
		return err
	}
	req, err := parseWait(r.URL.Query(), h.Info())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.draining, func() { cancel(term.ErrClosed) })()
	seen := &agentTerminals{server: s, access: s.access(r)}
	got, err := agenttools.Wait(ctx, mcpTerminal{h}, seen, req)
	switch {
	case errors.Is(context.Cause(ctx), term.ErrClosed):
		return term.ErrClosed // which a client asks the next daemon again
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return &localapi.Error{Code: localapi.CodeBadRequest, Message: err.Error()}
	}
	return reply(w, waitedFrom(h.Info(), got))
}

func parseWait(q url.Values, i term.Info) (agenttools.WaitRequest, error) {
	req := agenttools.WaitRequest{Pattern: q.Get("pattern"), URL: q.Get("url"), Command: q.Get("command") == "1", Since: -1}
	if q.Get("new") == "1" {
		req.Since = i.Bytes
	}
	idle, err1 := number(q, "idle_ms", maxWait.Milliseconds())
	timeout, err2 := number(q, "timeout_ms", maxWait.Milliseconds())
	port, err3 := number(q, "port", 65535)
	settle, err4 := number(q, "settle_ms", maxWait.Milliseconds())
	if req.Settle = time.Duration(settle) * time.Millisecond; q.Has("settle_ms") && settle == 0 {
		req.Settle = -1
	}
	req.Idle, req.Timeout, req.Port = time.Duration(idle)*time.Millisecond, time.Duration(timeout)*time.Millisecond, int(port)
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			return req, err
		}
	}
	return req, nil
}

func waitedFrom(i term.Info, got *agenttools.WaitAnswer) localapi.Waited {
	w := localapi.Waited{
		SchemaVersion: localapi.SchemaVersion, ID: string(i.ID), Reason: string(got.Reason), ElapsedMs: got.ElapsedMs, Line: got.Line,
		Address: got.Address, Listener: got.Listener, Status: got.Status, Detail: got.Detail, Exit: terminalFrom(i).Exit, Cursor: got.Cursor, Masked: got.Masked,
	}
	if c := got.Command; c != nil {
		ms := float64(c.DurationMs)
		w.Command = &localapi.Command{N: c.N, Exit: c.ExitCode, Running: c.Running, Verified: c.Verified, Within: c.Within, DurationMs: &ms, Start: c.Start, End: c.End}
		if c.Line != "" {
			w.Command.Line = &c.Line
		}
	}
	return w
}

// Wait returns when a condition is met, or the terminal has exited, or the time is up: Reason tells which.
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
