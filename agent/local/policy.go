package local

import (
	"context"
	"errors"
	"net/http"

	"tether/agent/audit"
	"tether/agent/policy"
	"tether/agent/term"
	"tether/platform/shell"
)

// start starts what the request asks for, if the policy admits it. It may wait
// for the person's answer, but not longer than the daemon is there.
func (s *Server) start(ctx context.Context, asked policy.Request, req SpawnRequest) (term.Handle, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.draining, func() { cancel(term.ErrClosed) })()
	return s.opts.Policy.Spawn(ctx, asked, func() (term.Handle, error) {
		req.Door = asked.Door
		spec, err := s.opts.Daemon.Spec(ctx, req)
		if err != nil {
			return term.Handle{}, err
		}
		if asked.Actor.Role == term.RoleAgent && !asked.Background {
			spec.TimeLimit = s.opts.Policy.TimeLimit(asked.Actor)
		}
		spec.Unsigned = asked.Actor == term.User && callerIn(ctx).Sign == ""
		return s.launch(s.opts.Access(asked.Actor), spec)
	})
}

// launch starts a terminal that the policy has admitted, in the sandbox that is
// configured for its owner.
func (s *Server) launch(access term.Access, spec term.Spec) (term.Handle, error) {
	s.noteAgent(access.Actor()) // one at a host does not come through this door
	if s.opts.Confine != nil && access.Actor().Role == term.RoleAgent {
		if err := s.opts.Confine(access.Actor(), &spec); err != nil {
			if spec.Ended != nil {
				spec.Ended()
			}
			return term.Handle{}, err
		}
	}
	return access.Spawn(spec)
}

// asked is the request in the policy's words.
func (r *SpawnRequest) asked(actor term.Actor, door string) policy.Request {
	asked := policy.Request{Door: door, Actor: actor, Argv: r.Command, Line: r.Line, Cwd: r.Cwd,
		Env: r.SetEnv, Approved: r.Approved}
	if r.Line != "" {
		asked.Shell = shell.Line(r.Line)[0] // cmd.exe does not read a line as a POSIX shell does
	}
	if r.Shell && len(r.Command) == 0 {
		asked.Argv = []string{shell.Login()}
	}
	return asked
}

// changedEnv returns what env, if it is not nil, sets otherwise than a login
// would: all of it if nobody knows that.
func (s *Server) changedEnv(ctx context.Context, env []string) []string {
	if env == nil {
		return nil
	}
	login, err := s.opts.Daemon.Environment(ctx, false)
	if err != nil {
		return env
	}
	known := map[string]bool{}
	for _, e := range login {
		known[e] = true
	}
	var changed []string
	for _, e := range env {
		if !known[e] {
			changed = append(changed, e)
		}
	}
	return changed
}

// refusalError gives a refusal its code, nil if err is none.
func refusalError(err error) *Error {
	var refused *policy.Refusal
	if !errors.As(err, &refused) {
		return nil
	}
	e := &Error{Code: CodeDenied, Message: refused.Error()}
	switch refused.Code {
	case policy.CodeRate, policy.CodeTooMany, policy.CodeBusy:
		e.Code = CodeLimit
	case policy.CodeBlocked:
		e.Hint = "tether policy check explains it: rule " + refused.Rule
	}
	return e
}

// AuditHead is the end of the audit log as the daemon that writes it knows it.
type AuditHead struct {
	SchemaVersion int        `json:"schema_version"`
	Head          audit.Head `json:"head"`
}

func (s *Server) auditHead(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, AuditHead{SchemaVersion: SchemaVersion, Head: s.opts.Policy.AuditHead()})
}

// AuditHead asks for the end of the audit log.
func (c *Client) AuditHead(ctx context.Context) (audit.Head, error) {
	var h AuditHead
	return h.Head, c.do(ctx, http.MethodGet, "/v1/audit/head", nil, &h)
}
