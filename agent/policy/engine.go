package policy

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"tether/agent/audit"
	"tether/agent/config"
	"tether/agent/term"
)

// Options configures an Engine. The zero value is an engine with the built-in
// rules and default limits that keeps the end of its audit log in memory.
type Options struct {
	// Config is the section [policy]; the zero value means config.Default's.
	Config config.Policy
	// AuditPath is the file of the audit log, "" for none.
	AuditPath string
	// Home is what "~" means in the configuration; "" asks the system.
	Home string
}

// Engine decides and remembers. It is safe for concurrent use. It has no
// goroutines.
type Engine struct {
	// Set at construction.
	config    config.Policy
	book      *rulebook
	log       *audit.Log // nil without a file
	limits    limits
	questions questions
	refusals  flood
	signals   flood

	mu     sync.Mutex
	recent []Record // the newest events, oldest first; only without a file
}

// New returns an engine, or says everything that is wrong with the
// configuration. Close ends it.
func New(o Options) (*Engine, error) {
	if o.Config.BlockList == "" {
		o.Config = config.Default().Policy
	}
	if o.Home == "" {
		o.Home, _ = os.UserHomeDir() // without one, "~" is no absolute path, and said to be wrong
	}
	book, err := newRulebook(o.Config, o.Home)
	if err != nil {
		return nil, err
	}
	e := &Engine{config: o.Config, book: book, limits: limits{usage: map[account]*usage{}}, questions: questions{watch: make(chan struct{})}, refusals: newFlood("refusals"), signals: newFlood("signals")}
	if o.AuditPath != "" {
		e.log = audit.New(audit.Options{Path: o.AuditPath, MaxBytes: int64(o.Config.AuditBytes)})
	}
	return e, nil
}

// Close closes the audit log. What waits for an answer is left to its context.
func (e *Engine) Close() error {
	if e.log == nil {
		return nil
	}
	return e.log.Close()
}

// Check applies the rules alone: nothing is counted, asked or written.
func (e *Engine) Check(r Request) Decision { return e.book.check(r) }

// Spawn decides about a request and, if it is allowed, calls start, which starts
// the terminal. Rules come first, then limits; what is to be asked waits for an
// answer, at most for the configured time. The decision, and the answer, are
// audited. The terminal takes one of the principal's places until it has exited
// or was promoted; if start fails, nothing is counted. Errors: a *Refusal,
// ctx's, or what start returned.
func (e *Engine) Spawn(ctx context.Context, r Request, start func() (term.Handle, error)) (term.Handle, error) {
	d, p, err := e.admit(ctx, r)
	if err != nil {
		return term.Handle{}, err
	}
	h, err := start()
	ev := r.event(EventSpawn, d)
	if err != nil {
		e.limits.fail(p)
		ev.Type, ev.Detail = EventFailed, err.Error()
		e.Audit(ev)
		return term.Handle{}, err
	}
	e.limits.hold(p, h)
	ev.Terminal, ev.Host = h.ID(), strings.Join(h.Info().LentTo, ",")
	e.Audit(ev)
	return h, nil
}

// Sandbox returns the kind of sandbox in which the actor's commands run, "" for
// none, and what they may change there beside their own directory. The paths
// are absolute.
func (e *Engine) Sandbox(a term.Actor) (kind string, writable []string) {
	if a.Role != term.RoleAgent {
		return "", nil
	}
	id := e.book.identityOf(a)
	if id.config.Sandbox == "none" {
		return "", nil
	}
	return id.config.Sandbox, id.writable
}

// Adopt counts an agent's terminal that runs already: it was started by a
// daemon before this one, or left and taken up again. Others it ignores.
func (e *Engine) Adopt(h term.Handle) {
	if h.Info().Owner.Role == term.RoleAgent {
		e.limits.adopt(h)
	}
}

// admit decides, and takes a place when the answer is yes.
func (e *Engine) admit(ctx context.Context, r Request) (Decision, *place, error) {
	d := e.Check(r)
	if d.Effect == Deny {
		return d, nil, e.refuse(r, &Refusal{d, CodeBlocked})
	}
	p, refused := e.limits.reserve(account{counted(r.Actor), r.Background}, e.book.boundsOf(r.Actor, e.config.Limits, r.Background))
	if refused != nil {
		return refused.Decision, nil, e.refuse(r, refused)
	}
	switch {
	case d.Effect == Ask:
		var err error
		if d, err = e.ask(ctx, r, d); err != nil {
			e.limits.give(p)
			return d, nil, err
		}
	case d.Rule != ruleUser: // that the person may is no decision
		e.Audit(r.event(EventDecision, d))
	}
	return d, p, nil
}

func (e *Engine) refuse(r Request, refused *Refusal) error {
	ev := r.event(EventDecision, refused.Decision)
	ev.Detail = string(refused.Code)
	e.Audit(ev)
	return refused
}

// ask lets the person decide about r, unless that has been done. The decision
// that it returns is final.
func (e *Engine) ask(ctx context.Context, r Request, why Decision) (Decision, error) {
	known := ""
	if g, ok := e.questions.granted(r); ok {
		known = "approved until " + g.Expires.Format(time.TimeOnly) + " as " + g.ID
	} else if r.Approved != "" {
		known = "approved by " + brief(r.Approved)
	}
	if known != "" {
		d := Decision{Allow, why.Rule, known}
		e.Audit(r.event(EventDecision, d))
		return d, nil
	}
	p, ok := e.questions.put(r, why, time.Duration(e.config.AskTimeout), e.config.Limits.Questions)
	if !ok {
		return why, e.refuse(r, &Refusal{Decision{Deny, why.Rule, "it has to be approved, and too many other questions wait for an answer: " + why.Reason}, CodeBusy})
	}
	ev := r.event(EventDecision, why)
	ev.Detail = p.ID
	e.Audit(ev)
	d, err := e.wait(ctx, p)
	ev.Type, ev.Decision = EventAnswer, d
	e.Audit(ev)
	return d, err
}

// wait returns what becomes of a question.
func (e *Engine) wait(ctx context.Context, p *pending) (Decision, error) {
	timer := time.NewTimer(time.Until(p.Expires))
	defer timer.Stop()
	select {
	case a := <-p.answer:
		return answered(p, a)
	case <-timer.C:
		if !e.questions.take(p, true) {
			return answered(p, <-p.answer)
		}
		d := Decision{Deny, p.Why.Rule, fmt.Sprintf("%s; it has to be approved, and nobody answered within %s. To allow the next attempt: tether approve %s",
			p.Why.Reason, e.config.AskTimeout, p.ID)}
		return d, &Refusal{d, CodeUnanswered}
	case <-ctx.Done():
		if !e.questions.take(p, false) {
			return answered(p, <-p.answer)
		}
		return Decision{Deny, p.Why.Rule, "whoever asked is gone"}, context.Cause(ctx)
	}
}

// answered is what came of the person's answer.
func answered(p *pending, a Answer) (Decision, error) {
	if a.Allow {
		return Decision{Allow, p.Why.Rule, "the person said yes"}, nil
	}
	d := Decision{Deny, p.Why.Rule, p.Why.Reason + "; the person said no"}
	return d, &Refusal{d, CodeRejected}
}

// Questions returns what waits for the person, oldest first, then what nobody
// answered in time, and the grants in force. The version changes with them.
func (e *Engine) Questions() (asked []Question, grants []Grant, version uint64) {
	return e.questions.list()
}

// Changed returns the version of Questions as soon as it is not since, or
// ctx's error.
func (e *Engine) Changed(ctx context.Context, since uint64) (uint64, error) {
	return e.questions.changed(ctx, since)
}

// Waiting counts the questions that wait: the actor's own, or all for the user.
func (e *Engine) Waiting(a term.Actor) int { return e.questions.waitingFor(a) }

// Answer answers a question in the name of the person. The grant is nil unless
// the answer made one. Errors: ErrNoQuestion, ErrTooLong.
func (e *Engine) Answer(id string, a Answer) (Question, *Grant, error) {
	q, g, err := e.questions.answer(id, a)
	if err != nil {
		return q, nil, err
	}
	ev := q.Request.event(EventAnswer, Decision{Deny, q.Why.Rule, "the person said no, too late"})
	switch {
	case g != nil:
		ev.Type, ev.Decision = EventGrant, Decision{Allow, q.Why.Rule, "the person approved " + q.ID}
		ev.Detail = fmt.Sprintf("%s until %s", g.ID, g.Expires.UTC().Format(time.RFC3339))
		e.Audit(ev)
	case q.Expired:
		e.Audit(ev) // others are written by who waits for the answer
	}
	return q, g, nil
}

// Revoke ends a grant. The error is ErrNoQuestion.
func (e *Engine) Revoke(id string) (Grant, error) {
	g, err := e.questions.revoke(id)
	if err == nil {
		ev := g.Request.event(EventGrant, Decision{Effect: Ask, Rule: "revoked", Reason: "the person revoked the approval"})
		ev.Detail = g.ID
		e.Audit(ev)
	}
	return g, err
}
