package local

import (
	"context"
	"errors"
	"net/http"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/agent/start"
	"tether/agent/term"
)

// start starts the request's command, if the policy admits it. It may wait for the person's answer, at most until the daemon ends.
func (s *Server) start(ctx context.Context, r start.Request) (term.Handle, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.draining, func() { cancel(term.ErrClosed) })()
	s.noteAgent(r.Actor) // one at a host does not come through this door
	return s.opts.Starter.Start(ctx, r)
}

// startRequest is the request of an actor at a door, not yet looked at.
func startRequest(ctx context.Context, r *localapi.SpawnRequest, actor term.Actor, door string) start.Request {
	return start.Request{
		Actor: actor, Door: door, Approved: r.Approved, Unsigned: actor == term.User && callerIn(ctx).Sign == "",
		Command: r.Command, Line: r.Line, Shell: r.Shell, NoIntegration: r.NoIntegration, Env: r.Env, SetEnv: r.SetEnv,
		Name: r.Name, Cwd: r.Cwd, Cols: r.Cols, Rows: r.Rows, OnSlow: r.OnSlow, Private: r.Private, LendTo: r.LendTo, Leased: r.Leased,
	}
}

// refusalError gives a refusal its code, nil if err is none.
func refusalError(err error) *localapi.Error {
	var refused *policy.Refusal
	if !errors.As(err, &refused) {
		return nil
	}
	e := &localapi.Error{Code: localapi.CodeDenied, Message: refused.Error()}
	switch refused.Code {
	case policy.CodeRate, policy.CodeTooMany, policy.CodeBusy:
		e.Code = localapi.CodeLimit
	case policy.CodeBlocked:
		e.Hint = "tether policy check explains it: rule " + refused.Rule
	}
	return e
}

func (s *Server) auditHead(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, localapi.AuditHead{SchemaVersion: localapi.SchemaVersion, Head: s.opts.Policy.AuditHead()})
}
