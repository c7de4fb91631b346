package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"tether/agent/local"
	"tether/agent/policy"
	"tether/internal/retry"
	"tether/platform/notify"
)

const (
	// notifyPause is the least time between two notifications: an agent that asks often
	// must not fill the desktop.
	notifyPause = 10 * time.Second
	// notifyTimeout bounds the time for showing one notification.
	notifyTimeout = 5 * time.Second
)

// notifyQuestions shows agents' questions on the person's desktop, until ctx ends. The
// returned function waits for that. A single question can be answered there, which is a
// sign of a person.
func (a *Agent) notifyQuestions(ctx context.Context, server *local.Server) (wait func()) {
	if a.cfg.Notify == nil || !a.settings.Policy.Notify {
		return func() {}
	}
	var running sync.WaitGroup
	running.Go(func() {
		told := map[string]bool{}
		for {
			asked, _, version := a.policy.Questions()
			text, alone := a.newQuestions(asked, told)
			if text != "" {
				if alone != nil && a.cfg.AskDesktop != nil {
					running.Go(func() { a.askDesktop(ctx, *alone, text, server) })
				} else {
					a.notify(ctx, text)
				}
				retry.Wait(ctx, notifyPause)
			}
			if _, err := a.policy.Changed(ctx, version); err != nil {
				return
			}
		}
	})
	return running.Wait
}

// The keys of the buttons.
const (
	keyApprove = "approve"
	keyDeny    = "deny"
)

// askDesktop shows a question with buttons until it is answered, here or elsewhere. It
// offers to approve only if everything that decides which code runs is shown.
func (a *Agent) askDesktop(ctx context.Context, q policy.Question, text string, server *local.Server) {
	buttons, body := []notify.Button{{Key: keyDeny, Label: "Deny"}}, text
	if a.policy.Plain(q) {
		buttons, body = append([]notify.Button{{Key: keyApprove, Label: "Approve once"}}, buttons...), text+"\nin "+q.Request.Cwd
	}
	asking, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel() // before it is waited for
	watching.Go(func() { a.cancelAnswered(asking, cancel, q.ID) })
	key, err := a.cfg.AskDesktop(asking, "tether approvals", body, buttons, server.PersonsProcess)
	switch {
	case err == nil && (key == keyApprove && len(buttons) > 1 || key == keyDeny):
		_, _, err = a.policy.Answer(q.ID, policy.Answer{Allow: key == keyApprove})
		a.log.Info().Str("question", q.ID).Str("answer", key).Err(err).Msg("answered at a notification")
	case err == nil, asking.Err() != nil, errors.Is(err, notify.ErrClosed):
	default:
		a.log.Debug().Err(err).Msg("notification with buttons")
		a.notify(ctx, text)
	}
}

// cancelAnswered calls cancel when the question does not wait any more. It ends with ctx.
func (a *Agent) cancelAnswered(ctx context.Context, cancel func(), id string) {
	for {
		asked, _, version := a.policy.Questions()
		if !slices.ContainsFunc(asked, func(q policy.Question) bool { return q.ID == id && !q.Expired }) {
			cancel()
			return
		}
		if _, err := a.policy.Changed(ctx, version); err != nil {
			return
		}
	}
}

// newQuestions returns a text about the waiting questions that are not in told yet, and
// adds them to told. It removes questions that no longer wait from told. alone is the
// question in the text; nil if several wait.
func (a *Agent) newQuestions(asked []policy.Question, told map[string]bool) (text string, alone *policy.Question) {
	var latest policy.Question
	news, waiting := 0, map[string]bool{}
	for _, q := range asked {
		if q.Expired {
			continue
		}
		waiting[q.ID] = true
		if !told[q.ID] {
			told[q.ID], latest = true, q
			news++
		}
	}
	maps.DeleteFunc(told, func(id string, _ bool) bool { return !waiting[id] })
	switch {
	case news == 0:
		return "", nil
	case len(waiting) > 1:
		return fmt.Sprintf("%d agent commands await approval; the last: %s", len(waiting), a.policy.Summary(latest.Request)), nil
	}
	return a.policy.Summary(latest.Request), &latest
}

func (a *Agent) notify(ctx context.Context, text string) {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	if err := a.cfg.Notify(ctx, "tether approvals", text); err != nil {
		a.log.Debug().Err(err).Msg("notification")
	}
}
