package policy

import (
	"context"
	"fmt"
	"time"
)

// ask lets the person decide about r, unless r is approved already. The decision that it
// returns is final, except with the refusal CodeWaiting. The question is nil if r was
// approved already, or could not be asked about. r must come from bind.
func (e *Engine) ask(ctx context.Context, r Request, scripts []Script, why Decision) (Decision, *pending, error) {
	if known := e.approved(r); known != "" {
		d := Decision{Allow, why.Rule, known}
		e.Audit(r.event(EventDecision, d))
		return d, nil, nil
	}
	p := e.questions.join(r)
	if p == nil {
		var ok bool
		p, ok = e.questions.put(r, scripts, why, time.Duration(e.config.AskTimeout), e.config.Limits.Questions, e.lapse)
		if !ok {
			return why, nil, e.refuse(r, &Refusal{Decision{Deny, why.Rule, "approval is required, but too many approval requests are pending: " + why.Reason}, CodeBusy})
		}
		ev := r.event(EventDecision, why)
		ev.Detail = p.ID
		e.Audit(ev)
	}
	d, err := e.wait(ctx, r, p)
	if refused, ok := err.(*Refusal); !ok || refused.Code != CodeWaiting {
		ev := r.event(EventAnswer, d)
		ev.Detail = p.ID
		e.Audit(ev)
	}
	return d, p, err
}

// approved returns a sentence about the approval that the request has already, "" if it
// has none.
func (e *Engine) approved(r Request) string {
	if g, ok := e.questions.granted(r); ok {
		return "approved until " + g.Expires.Format(time.TimeOnly) + " as " + g.ID
	}
	if r.Approved != "" {
		return "approved by " + brief(r.Approved)
	}
	return ""
}

// wait waits for the outcome of a question, at most policy.ask_wait if r.Again is set.
func (e *Engine) wait(ctx context.Context, r Request, p *pending) (Decision, error) {
	var timeout <-chan time.Time
	if r.Again {
		timer := time.NewTimer(time.Duration(e.config.AskWait))
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case a := <-p.answer:
		return e.answered(p, a)
	case <-timeout:
		if !e.questions.leave(p) {
			return e.answered(p, <-p.answer)
		}
		d := Decision{Ask, p.Why.Rule, fmt.Sprintf("waiting for the user; call again with the same arguments (request %s, open for another %s): %s",
			p.ID, time.Until(p.Expires).Round(time.Second), p.Why.Reason)}
		return d, &Refusal{d, CodeWaiting}
	case <-ctx.Done():
		if !e.questions.take(p, false) {
			return e.answered(p, <-p.answer)
		}
		return Decision{Deny, p.Why.Rule, "the agent no longer waits"}, context.Cause(ctx)
	}
}

// answered turns a verdict into a decision.
func (e *Engine) answered(p *pending, a verdict) (Decision, error) {
	switch {
	case a.nobody:
		d := e.unanswered(p)
		return d, &Refusal{d, CodeUnanswered}
	case a.Allow:
		return Decision{Allow, p.Why.Rule, "approved by the user"}, nil
	}
	d := Decision{Deny, p.Why.Rule, p.Why.Reason + "; denied by the user"}
	return d, &Refusal{d, CodeRejected}
}

func (e *Engine) unanswered(p *pending) Decision {
	return Decision{Deny, p.Why.Rule, fmt.Sprintf("%s; approval is required, and nobody answered within %s. To allow the next attempt: tether approve %s",
		p.Why.Reason, e.config.AskTimeout, p.ID)}
}

// lapse ends a question at the end of its time, unless it was answered.
func (e *Engine) lapse(p *pending) {
	if !e.questions.take(p, true) {
		return
	}
	if p.left {
		ev := p.Request.event(EventAnswer, e.unanswered(p))
		ev.Detail = p.ID
		e.Audit(ev)
		return
	}
	p.answer <- verdict{nobody: true}
}
