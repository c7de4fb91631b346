package policy

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"tether/agent/audit"
	"tether/agent/config"
	"tether/agent/term"
)

// Options configures an Engine. The zero value gives an engine that has the built-in
// rules and default limits and keeps the end of its audit log in memory.
type Options struct {
	// Config is the section [policy]; the zero value means config.Default's.
	Config config.Policy
	// AuditPath is the file of the audit log, "" for none.
	AuditPath string
	// Home is the meaning of "~" in the configuration; "" asks the system.
	Home string
	// Mask, if not nil, masks secrets in a text that is shown, and also the values of
	// those variables in env whose names suggest a secret. It may take a moment.
	Mask func(text string, env []string) string
}

// Engine decides about requests and keeps questions, grants and counts. It is safe for
// concurrent use. It has no goroutines.
type Engine struct {
	// Set at construction.
	config    config.Policy
	book      *rulebook
	log       *audit.Log // nil without a file
	mask      func(text string, env []string) string
	limits    limits
	questions questions
	refusals  flood
	signals   flood
	inputs    flood

	mu     sync.Mutex
	recent []Record // the newest events, oldest first; only without a file
}

// New returns an engine, or an error that names everything that is wrong with the
// configuration. Close ends the engine.
func New(o Options) (*Engine, error) {
	if o.Config.BlockList == "" {
		o.Config = config.Default().Policy
	}
	if o.Home == "" {
		o.Home, _ = os.UserHomeDir() // without one, newRulebook reports "~" as not absolute
	}
	book, err := newRulebook(o.Config, o.Home)
	if err != nil {
		return nil, err
	}
	e := &Engine{config: o.Config, book: book, mask: o.Mask, limits: limits{usage: map[account]*usage{}}, refusals: newFlood("refusals"), signals: newFlood("signals"), inputs: newFlood("inputs")}
	if o.AuditPath != "" {
		e.log = audit.New(audit.Options{Path: o.AuditPath, MaxBytes: int64(o.Config.AuditBytes)})
	}
	return e, nil
}

// Close closes the audit log. Waiting questions end with their contexts.
func (e *Engine) Close() error {
	if e.log == nil {
		return nil
	}
	return e.log.Close()
}

// Check returns the decision of the rules alone: it counts, asks and writes nothing.
func (e *Engine) Check(r Request) Decision { return e.book.check(r) }

// Spawn decides about a request and, if it is allowed, calls start, which starts the
// terminal. Rules come first, then limits. If a question is needed, it waits at most the
// configured time for the answer; see Request.Again. If a script has changed by the time
// the approved request starts, the person is asked again. The decision, and the answer,
// are audited. The terminal takes one of the principal's places until it has exited or
// was promoted; if start fails, nothing is counted. Errors: a *Refusal, ctx's, or start's
// error.
func (e *Engine) Spawn(ctx context.Context, r Request, start func() (term.Handle, error)) (term.Handle, error) {
	var d Decision
	var p *place
	for changed := false; ; changed = true {
		var asked *Request
		var err error
		if d, p, asked, err = e.admit(ctx, r, changed); err != nil {
			return term.Handle{}, err
		}
		if asked == nil {
			break
		}
		if now, _ := e.bind(r); now.bound == asked.bound {
			break
		}
		e.limits.fail(p) // it differs from the approved one
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

// ruleDeclared is the rule that allows a restart.
const ruleDeclared = "terminal.agents"

// Restart decides about an agent's restart of a terminal whose declaration lets agents do
// that; r is the command that the person has declared. A rule that would ask allows it, a
// rule that denies refuses it, and restarts count among the agent's starts per minute.
// The decision is audited. Errors: a *Refusal.
func (e *Engine) Restart(r Request, id term.ID) error {
	if d := e.Check(r); d.Effect == Deny {
		return e.refuse(r, &Refusal{d, CodeBlocked})
	}
	limit := bound{perMinute: e.book.boundsOf(r.Actor, e.config.Limits, true).perMinute}
	p, refused := e.limits.reserve(account{counted(r.Actor), true}, limit)
	if refused != nil {
		return e.refuse(r, refused)
	}
	e.limits.free(p)
	ev := r.event(EventRestart, Decision{Allow, ruleDeclared, "the declaration of this terminal lets agents restart it"})
	ev.Terminal = id
	e.Audit(ev)
	return nil
}

// Sandbox lists the paths that a principal's commands may reach. Paths are absolute.
type Sandbox struct {
	Kind      string   // of platform/sandbox; "" for none
	Roots     []string // the working directory must be in one of these, links followed; none means Writable
	Writable  []string // besides the working directory
	Readable  []string
	Sockets   []string
	NoNetwork bool
}

// Sandbox returns the sandbox in which the actor's commands run.
func (e *Engine) Sandbox(a term.Actor) Sandbox {
	if a.Role != term.RoleAgent {
		return Sandbox{}
	}
	return e.book.identityOf(a).sandbox
}

// Sandboxed reports whether any principal has a sandbox.
func (e *Engine) Sandboxed() bool {
	return slices.ContainsFunc(e.book.identities, func(i identity) bool { return i.sandbox.Kind != "" })
}

// Granted returns the directories in which agents with a sandbox may run a command or
// change files, also by the names to which links lead now.
func (e *Engine) Granted() []string {
	var dirs []string
	for _, i := range e.book.identities {
		if i.sandbox.Kind != "" {
			dirs = slices.Concat(dirs, i.sandbox.Roots, i.sandbox.Writable) // Roots are resolved when the configuration is read
			for _, path := range i.sandbox.Writable {
				dirs = append(dirs, resolved(path))
			}
		}
	}
	return dirs
}

// Adopt counts an agent's terminal that runs already, because an earlier daemon started
// it or because the connection to its holder was lost and it was adopted again. It
// ignores other terminals.
func (e *Engine) Adopt(h term.Handle) {
	if h.Info().Owner.Role == term.RoleAgent {
		e.limits.adopt(h)
	}
}

// admit decides about a request, and takes a place if it is allowed. bound is the request
// that the approval covers, nil if no question was needed. changed says that a script has
// changed since the request was approved.
func (e *Engine) admit(ctx context.Context, r Request, changed bool) (d Decision, p *place, bound *Request, err error) {
	d = e.Check(r)
	if d.Effect == Deny {
		return d, nil, nil, e.refuse(r, &Refusal{d, CodeBlocked})
	}
	of, b := account{counted(r.Actor), r.Background}, e.book.boundsOf(r.Actor, e.config.Limits, r.Background)
	var asked *pending
	decided := d.Effect != Ask && d.Rule != ruleUser // the person's own right is not recorded as a decision
	if d.Effect == Ask {                             // a question takes no place and is no start; none is asked if limits forbid
		if changed {
			d.Reason = "the script has changed since it was approved: " + d.Reason
		}
		kept, scripts := e.bind(r)
		bound = &kept
		if refused := e.limits.full(of, b); refused != nil && !e.questions.known(kept) {
			return refused.Decision, nil, nil, e.refuse(r, refused)
		}
		if d, asked, err = e.ask(ctx, kept, scripts, d); err != nil {
			return d, nil, nil, err
		}
	}
	if asked != nil {
		b.perMinute = 0 // nobody approves faster than the person
	}
	p, refused := e.limits.reserve(of, b)
	if refused != nil {
		if asked != nil {
			e.questions.keep(asked)
		}
		return refused.Decision, nil, nil, e.refuse(r, refused)
	}
	if decided {
		e.Audit(r.event(EventDecision, d))
	}
	return d, p, bound, nil
}

func (e *Engine) refuse(r Request, refused *Refusal) error {
	ev := r.event(EventDecision, refused.Decision)
	ev.Detail = string(refused.Code)
	e.Audit(ev)
	return refused
}

// Questions returns the questions that wait for the person, oldest first, then those that
// nobody answered in time, and the grants in force. version changes when one is added,
// answered, withdrawn or revoked, and when the time of a question ends.
func (e *Engine) Questions() (asked []Question, grants []Grant, version uint64) {
	return e.questions.list()
}

// Changed returns the version of Questions once it differs from since, or ctx's error.
func (e *Engine) Changed(ctx context.Context, since uint64) (uint64, error) {
	return e.questions.changed(ctx, since)
}

// Waiting returns the number of waiting questions: the actor's own, or all of them for
// the user.
func (e *Engine) Waiting(a term.Actor) int { return e.questions.waitingFor(a) }

// Answer answers a question for the person. The grant is nil unless the answer made one.
// Errors: ErrNoQuestion, ErrTooLong.
func (e *Engine) Answer(id string, a Answer) (Question, *Grant, error) {
	q, g, left, err := e.questions.answer(id, a)
	if err != nil {
		return q, nil, err
	}
	ev := q.Request.event(EventAnswer, Decision{Deny, q.Why.Rule, "denied by the user, too late"})
	switch {
	case left && g == nil: // nobody waits for the answer at this moment
		ev.Decision = Decision{Deny, q.Why.Rule, "denied by the user"}
		if a.Allow {
			ev.Decision = Decision{Allow, q.Why.Rule, "approved by the user"}
		}
		e.Audit(ev)
	case g != nil:
		ev.Type, ev.Decision = EventGrant, Decision{Allow, q.Why.Rule, "the user approved " + q.ID}
		ev.Detail = fmt.Sprintf("%s until %s", g.ID, g.Expires.UTC().Format(time.RFC3339))
		e.Audit(ev)
	case q.Expired:
		e.Audit(ev) // others are recorded by the goroutine that waits for the answer
	}
	return q, g, nil
}

// Revoke ends a grant. The error is ErrNoQuestion.
func (e *Engine) Revoke(id string) (Grant, error) {
	g, err := e.questions.revoke(id)
	if err == nil {
		ev := g.Request.event(EventGrant, Decision{Effect: Ask, Rule: "revoked", Reason: "the user revoked the approval"})
		ev.Detail = g.ID
		e.Audit(ev)
	}
	return g, err
}
