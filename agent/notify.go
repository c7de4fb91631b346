package agent

import (
	"context"
	"fmt"
	"time"

	"tether/agent/policy"
)

const (
	// notifyPause is the least time between two notifications: an agent that asks often must not fill the desktop.
	notifyPause = 10 * time.Second
	// notifyTimeout bounds one.
	notifyTimeout = 5 * time.Second
)

// notifyQuestions tells the person's desktop what agents ask, until ctx ends.
// The returned function waits for that.
func (a *Agent) notifyQuestions(ctx context.Context) (wait func()) {
	if a.cfg.Notify == nil || !a.settings.Policy.Notify {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		told := map[string]bool{}
		for {
			asked, _, version := a.policy.Questions()
			text := a.newQuestions(asked, told)
			if text != "" {
				a.notify(ctx, text)
				select {
				case <-time.After(notifyPause):
				case <-ctx.Done():
				}
			}
			if _, err := a.policy.Changed(ctx, version); err != nil {
				return
			}
		}
	}()
	return func() { <-done }
}

// newQuestions says what waits and was not told yet, and notes it as told. What
// does not wait any more is forgotten.
func (a *Agent) newQuestions(asked []policy.Question, told map[string]bool) string {
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
	for id := range told {
		if !waiting[id] {
			delete(told, id)
		}
	}
	switch {
	case news == 0:
		return ""
	case len(waiting) > 1:
		return fmt.Sprintf("%d agent commands await approval; the last: %s", len(waiting), a.policy.Summary(latest.Request))
	}
	return a.policy.Summary(latest.Request)
}

func (a *Agent) notify(ctx context.Context, text string) {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	if err := a.cfg.Notify(ctx, "tether approvals", text); err != nil {
		a.log.Debug().Err(err).Msg("notification")
	}
}
