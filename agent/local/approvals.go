package local

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"tether/agent/policy"
)

// Approval is a question that waits for the person, one that nobody answered in time, or an approval that stands.
type Approval struct {
	ID       string    `json:"id"`    // "q-…" of a question, "g-…" of an approval
	State    string    `json:"state"` // waiting, expired, granted
	Actor    string    `json:"actor"`
	Who      string    `json:"who,omitempty"` // an agent at a host, by the name that the host gives it; for people to read
	Door     string    `json:"door,omitempty"`
	Argv     []string  `json:"argv,omitempty"`
	Line     string    `json:"line,omitempty"`
	Cwd      string    `json:"cwd"`
	Env      []string  `json:"env,omitempty"`      // names of the variables that it sets
	Settings []string  `json:"settings,omitempty"` // NAME=value; values that decide which code runs are shown, secrets in others masked
	Scripts  []Script  `json:"scripts,omitempty"`  // of a question: files that it runs, as they were then
	Summary  string    `json:"summary,omitempty"`  // of a question, for notifications: the requester and the command, short and without secrets
	Rule     string    `json:"rule,omitempty"`
	Reason   string    `json:"reason,omitempty"`
	Since    time.Time `json:"since"`
	Expires  time.Time `json:"expires"` // a question is denied then
}

// Script is a file that a command runs, as it was when the question was asked.
type Script struct {
	Path string `json:"path"`
	Sum  string `json:"sha256,omitempty"` // of its contents; "" if it could not be read
	Size int64  `json:"size"`             // bytes
}

// The states of an Approval.
const (
	ApprovalWaiting = "waiting"
	ApprovalExpired = "expired" // approving it lets the next attempt through
	ApprovalGranted = "granted"
)

// ApprovalList is the answer to a list: waiting questions, oldest first, then expired ones, then grants.
type ApprovalList struct {
	SchemaVersion int        `json:"schema_version"`
	Version       uint64     `json:"version"` // changes with the list
	Approvals     []Approval `json:"approvals"`
}

// ApprovalAnswer answers a question.
type ApprovalAnswer struct {
	Allow bool `json:"allow"`
	// ForSeconds makes an approval stand for so long; 0 is for this once.
	ForSeconds int64 `json:"for_seconds,omitempty"`
}

// Approved is the result of an answer.
type Approved struct {
	SchemaVersion int       `json:"schema_version"`
	ID            string    `json:"id"`
	Allow         bool      `json:"allow"`
	Grant         *Approval `json:"grant,omitempty"`
}

// longPoll is how long a list waits for a change.
const longPoll = 30 * time.Second

// approvals answers with the list, with ?since=VERSION when it has changed or after longPoll.
func (s *Server) approvals(w http.ResponseWriter, r *http.Request) error {
	if since := r.URL.Query().Get("since"); since != "" {
		version, err := strconv.ParseUint(since, 10, 64)
		if err != nil {
			return &Error{Code: CodeBadRequest, Message: fmt.Sprintf("since %.40q must be the version of a list", since)}
		}
		ctx, cancel := context.WithTimeout(r.Context(), longPoll)
		defer cancel()
		stop := context.AfterFunc(s.draining, cancel)
		defer stop()
		_, _ = s.opts.Policy.Changed(ctx, version) // the list tells whether it has
	}
	asked, grants, version := s.opts.Policy.Questions()
	list := ApprovalList{SchemaVersion: SchemaVersion, Version: version, Approvals: []Approval{}}
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

func approvalFrom(q policy.Question) Approval {
	a := requestOf(q.Request)
	a.ID, a.State, a.Since, a.Expires = q.ID, ApprovalWaiting, q.Asked, q.Expires
	a.Rule, a.Reason = q.Why.Rule, q.Why.Reason
	for _, script := range q.Scripts {
		a.Scripts = append(a.Scripts, Script(script))
	}
	if q.Expired {
		a.State = ApprovalExpired
	}
	return a
}

func grantFrom(g policy.Grant) Approval {
	a := requestOf(g.Request)
	a.ID, a.State, a.Since, a.Expires = g.ID, ApprovalGranted, g.Since, g.Expires
	return a
}

func requestOf(r policy.Request) Approval {
	return Approval{Actor: r.Actor.String(), Who: r.Who(), Door: r.Door, Argv: r.Argv, Line: r.Line, Cwd: r.Cwd, Env: names(r.Env), Settings: r.Env}
}

// approve answers a question.
func (s *Server) approve(w http.ResponseWriter, r *http.Request) error {
	var req ApprovalAnswer
	if err := decode(w, r, &req); err != nil {
		return err
	}
	if req.ForSeconds < 0 || req.ForSeconds > int64(policy.MaxGrant/time.Second) {
		return &Error{Code: CodeBadRequest, Message: policy.ErrTooLong.Error()}
	}
	id := r.PathValue("id")
	_, grant, err := s.opts.Policy.Answer(id, policy.Answer{Allow: req.Allow, For: time.Duration(req.ForSeconds) * time.Second})
	if err != nil {
		return approvalError(err)
	}
	out := Approved{SchemaVersion: SchemaVersion, ID: id, Allow: req.Allow}
	if grant != nil {
		g := grantFrom(*grant)
		out.Grant = &g
	}
	return reply(w, out)
}

// revoke ends an approval that stands.
func (s *Server) revoke(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.opts.Policy.Revoke(r.PathValue("id")); err != nil {
		return approvalError(err)
	}
	return reply(w, struct{}{})
}

func approvalError(err error) error {
	if errors.Is(err, policy.ErrNoQuestion) {
		return &Error{Code: CodeNotFound, Message: err.Error(), Hint: "tether approvals lists them"}
	}
	return err
}

// waiting is how many questions wait for the actor.
func (s *Server) waiting(r *http.Request) int { return s.opts.Policy.Waiting(ActorFrom(r.Context())) }

// Approvals returns the waiting and expired questions and the grants. With a version it first waits until the list has another, at most for
// half a minute.
func (c *Client) Approvals(ctx context.Context, since *uint64) (ApprovalList, error) {
	var l ApprovalList
	path := "/v1/approvals"
	if since != nil {
		path += "?since=" + strconv.FormatUint(*since, 10)
	}
	return l, c.do(ctx, http.MethodGet, path, nil, &l)
}

// Approve answers the question called id. An approval for no time is for this once, or, if the question has expired, for the next few
// minutes.
func (c *Client) Approve(ctx context.Context, id string, allow bool, standing time.Duration) (Approved, error) {
	var a Approved
	req := ApprovalAnswer{Allow: allow, ForSeconds: int64(standing / time.Second)}
	return a, c.do(ctx, http.MethodPost, "/v1/approvals/"+segment(id), req, &a)
}

// Revoke ends the approval called id.
func (c *Client) Revoke(ctx context.Context, id string) error {
	return c.do(ctx, http.MethodDelete, "/v1/approvals/"+segment(id), nil, &struct{}{})
}
