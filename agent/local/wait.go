package local

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"tether/agent/localapi"
	"tether/agent/term"
	"tether/agenttools"
	"tether/vocab"
)

// maxWait bounds the durations in a request to wait.
const maxWait = 7 * 24 * time.Hour

// wait answers when a condition is met. It waits as MCP's wait_terminal does, but without
// a time limit of its own.
func (s *Server) wait(w http.ResponseWriter, r *http.Request, h term.Handle) error {
	req, err := parseWait(paramsOf(r), h.Info())
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
		return term.ErrClosed // the client then asks the next daemon
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, new(*localapi.Error)):
		return err
	case err != nil:
		return &localapi.Error{Code: localapi.CodeBadRequest, Message: err.Error()}
	}
	return reply(w, waitedFrom(h.Info(), got))
}

func parseWait(q params, i term.Info) (agenttools.WaitRequest, error) {
	req := agenttools.WaitRequest{Pattern: q.Get("pattern"), URL: q.Get("url"), Command: q.Get("command") == "1", Verified: q.Get("verified") == "1", Since: -1}
	if q.Get("new") == "1" {
		req.Since = i.Bytes
	}
	idle, err1 := q.number("idle_ms", maxWait.Milliseconds())
	timeout, err2 := q.number("timeout_ms", maxWait.Milliseconds())
	port, err3 := q.number("port", 65535)
	settle, err4 := q.number("settle_ms", maxWait.Milliseconds())
	if req.Settle = time.Duration(settle) * time.Millisecond; q.Has("settle_ms") && settle == 0 {
		req.Settle = -1
	}
	req.Idle, req.Timeout, req.Port = time.Duration(idle)*time.Millisecond, time.Duration(timeout)*time.Millisecond, int(port)
	return req, cmp.Or(err1, err2, err3, err4, q.unknown())
}

func waitedFrom(i term.Info, got *agenttools.WaitAnswer) localapi.Waited {
	return localapi.Waited{
		SchemaVersion: localapi.SchemaVersion, ID: string(i.ID), Reason: string(got.Reason), ElapsedMs: got.ElapsedMs, Line: got.Line,
		Address: got.Address, Listener: got.Listener, Status: got.Status, Detail: got.Detail, Exit: i.Exit, Command: (*vocab.Command)(got.Command), Cursor: got.Cursor, Masked: got.Masked,
	}
}
