package local

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/internal/jsonspan"
)

// longPoll is how long a list waits for a change.
const longPoll = 30 * time.Second

// approvals answers with the list; with ?since=VERSION, once the list differs from that
// version, or after longPoll.
func (s *Server) approvals(w http.ResponseWriter, r *http.Request) error {
	q := paramsOf(r)
	since := q.Get("since")
	if err := q.unknown(); err != nil {
		return err
	}
	if since != "" {
		version, err := strconv.ParseUint(since, 10, 64)
		if err != nil {
			return localapi.BadRequest("since %.40q must be the version of a list", since)
		}
		ctx, cancel := context.WithTimeout(r.Context(), longPoll)
		defer cancel()
		stop := context.AfterFunc(s.draining, cancel)
		defer stop()
		_, _ = s.opts.Policy.Changed(ctx, version) // the list tells whether it has
	}
	asked, grants, version := s.opts.Policy.Questions()
	list := localapi.ApprovalList{SchemaVersion: localapi.SchemaVersion, Version: version, Approvals: []localapi.Approval{}}
	for _, q := range asked {
		a := approvalFrom(q)
		a.Summary = s.opts.Policy.Summary(q.Request)
		list.Approvals = append(list.Approvals, a)
	}
	for _, g := range grants {
		list.Approvals = append(list.Approvals, grantFrom(g))
	}
	return reply(w, list)
}

func approvalFrom(q policy.Question) localapi.Approval {
	a := requestOf(q.Request)
	a.ID, a.State, a.Since, a.Expires = q.ID, localapi.ApprovalWaiting, q.Asked, q.Expires
	a.Rule, a.Reason = q.Why.Rule, q.Why.Reason
	for _, script := range q.Scripts {
		script.Path = jsonspan.Show(script.Path)
		a.Scripts = append(a.Scripts, localapi.Script(script))
	}
	if q.Expired {
		a.State = localapi.ApprovalExpired
	}
	return a
}

func grantFrom(g policy.Grant) localapi.Approval {
	a := requestOf(g.Request)
	a.ID, a.State, a.Since, a.Expires = g.ID, localapi.ApprovalGranted, g.Since, g.Expires
	return a
}

func requestOf(r policy.Request) localapi.Approval {
	a := localapi.Approval{Actor: r.Actor.String(), Who: r.Who(), Door: r.Door, Line: r.Line, Env: policy.EnvNames(r.Env), Settings: slices.Clone(r.Env), Setting: r.Setting}
	a.Argv, a.ArgvBytes = jsonspan.Pack(r.Argv)
	a.Cwd, a.CwdBytes = jsonspan.PackOne(r.Cwd)
	for i := range a.Settings {
		a.Env[i], a.Settings[i] = jsonspan.Show(a.Env[i]), jsonspan.Show(a.Settings[i])
	}
	return a
}

// approve answers a question.
func (s *Server) approve(w http.ResponseWriter, r *http.Request, req localapi.ApprovalAnswer) error {
	if req.ForSeconds < 0 || req.ForSeconds > int64(policy.MaxGrant/time.Second) {
		return &localapi.Error{Code: localapi.CodeBadRequest, Message: policy.ErrTooLong.Error()}
	}
	id := r.PathValue("id")
	_, grant, err := s.opts.Policy.Answer(id, policy.Answer{Allow: req.Allow, For: time.Duration(req.ForSeconds) * time.Second})
	if err != nil {
		return approvalError(err)
	}
	out := localapi.Approved{SchemaVersion: localapi.SchemaVersion, ID: id, Allow: req.Allow}
	if grant != nil {
		out.Grant = new(grantFrom(*grant))
	}
	return reply(w, out)
}

// revoke ends a standing approval.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.opts.Policy.Revoke(r.PathValue("id")); err != nil {
		return approvalError(err)
	}
	return reply(w, struct{}{})
}

func approvalError(err error) error {
	if errors.Is(err, policy.ErrNoQuestion) {
		return &localapi.Error{Code: localapi.CodeNotFound, Message: err.Error(), Hint: "tether approvals lists them"}
	}
	return err
}

// waiting returns how many questions wait for the actor.
func (s *Server) waiting(r *http.Request) int { return s.opts.Policy.Waiting(ActorFrom(r.Context())) }

func (s *Server) auditHead(w http.ResponseWriter, _ *http.Request) error {
	return reply(w, localapi.AuditHead{SchemaVersion: localapi.SchemaVersion, Head: s.opts.Policy.AuditHead()})
}
