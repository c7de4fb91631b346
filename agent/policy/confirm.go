package policy

import (
	"context"

	"tether/agent/term"
)

// confirmFor is how long a question of Confirm waits before it is asked anew.
const confirmFor = MaxGrant

// Confirm asks the person whether a change of the daemon's own settings is to take
// effect, and waits for the answer until ctx ends. change says what is to change, in the
// form of the configuration file in the directory dir. It may be answered like a question
// about a command. The question and the answer are audited.
func (e *Engine) Confirm(ctx context.Context, rule, change, dir, reason string) (allow bool, err error) {
	r, why := Request{Door: DoorConfig, Actor: term.User, Setting: true, Line: change, Cwd: dir}, Decision{Ask, rule, reason}
	for {
		_, _, version := e.questions.list()
		p, ok := e.questions.put(r, nil, why, confirmFor, maxQuestions, e.lapse)
		if !ok { // as many questions wait as may
			if _, err := e.questions.changed(ctx, version); err != nil {
				return false, err
			}
			continue
		}
		ev := r.event(EventDecision, why)
		ev.Detail = p.ID
		e.Audit(ev)
		select {
		case a := <-p.answer:
			if a.nobody {
				continue
			}
			d := Decision{Deny, rule, "denied by the user"}
			if a.Allow {
				d = Decision{Allow, rule, "approved by the user"}
			}
			ev := r.event(EventAnswer, d)
			ev.Detail = p.ID
			e.Audit(ev)
			return a.Allow, nil
		case <-ctx.Done():
			e.questions.take(p, false)
			return false, context.Cause(ctx)
		}
	}
}
