package policy

import (
	"cmp"
	"fmt"
	"time"

	"tether/agent/term"
)

// TypingFree reports whether the configuration lets the actor type any text into its
// terminals.
func (e *Engine) TypingFree(a term.Actor) bool { return e.book.identityOf(a).config.Typing == "free" }

// Typed decides about a line that is typed at a shell's prompt: nil lets it pass. It does
// not wait: a line that needs a question is refused, and the refusal names the question.
// Once that is approved, the same line passes. The error is a *Refusal.
func (e *Engine) Typed(r Request) error {
	d := e.Check(r)
	switch {
	case d.Effect == Allow:
		return nil
	case d.Effect == Deny:
		return e.refuse(r, &Refusal{d, CodeBlocked})
	}
	r, scripts := e.bind(r)
	if e.approved(r) != "" {
		return nil
	}
	p := e.questions.join(r)
	if p != nil {
		select {
		case a := <-p.answer:
			_, err := e.answered(p, a)
			return err
		default: // nobody has answered yet
		}
	}
	if p == nil {
		var ok bool
		p, ok = e.questions.put(r, scripts, d, time.Duration(e.config.AskTimeout), e.config.Limits.Questions, e.lapse)
		if !ok {
			return e.refuse(r, &Refusal{Decision{Deny, d.Rule, "approval is required, but too many approval requests are pending: " + d.Reason}, CodeBusy})
		}
		ev := r.event(EventDecision, d)
		ev.Detail = p.ID
		e.Audit(ev)
	}
	if !e.questions.leave(p) {
		_, err := e.answered(p, <-p.answer)
		return err
	}
	d.Reason = fmt.Sprintf("nothing was typed: the line needs the user's approval (request %s); type it again after the approval: %s", p.ID, cmp.Or(d.Reason, d.Rule))
	return &Refusal{d, CodeWaiting}
}
