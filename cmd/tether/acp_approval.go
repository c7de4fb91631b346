package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"tether/agent/acp"
	"tether/agent/localapi"
	"tether/agent/policy"
	"tether/cmd/tether/internal/display"
	"tether/internal/retry"
)

// askAfter is how long a spawn may take before the daemon is asked whether it waits for
// the person.
const askAfter = 100 * time.Millisecond

// approved waits until the daemon asks for approval of c, which it may never do, and
// passes the question to the editor's user. If tether approve answers first, ctx ends. An
// error means that the command is no longer wanted.
func (a *agentTerminals) approved(ctx context.Context, c acp.Command) error {
	if !retry.Wait(ctx, askAfter) {
		return nil
	}
	for since := (*uint64)(nil); ; {
		l, err := a.person.Approvals(ctx, since)
		if err != nil {
			return nil // the spawn reports the error
		}
		for _, q := range l.Approvals {
			if a.isAbout(q, c) && a.claim(q.ID) {
				return a.answer(ctx, c, q)
			}
		}
		since = &l.Version
	}
}

// isAbout reports whether the question is about the command of this agent.
func (a *agentTerminals) isAbout(q localapi.Approval, c acp.Command) bool {
	return q.State == localapi.ApprovalWaiting && q.Actor == "agent "+a.name && q.Door == policy.DoorACP &&
		q.Line == c.Line && q.Cwd == c.Cwd && slices.Equal(q.Argv, c.Argv) && q.ArgvBytes == nil && q.CwdBytes == nil && slices.Equal(q.Env, policy.EnvNames(c.Env))
}

// claim reserves a question for one spawn, so that two spawns of the same command use two
// questions.
func (a *agentTerminals) claim(question string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.claimed[question] {
		return false
	}
	if a.claimed == nil {
		a.claimed = map[string]bool{}
	}
	a.claimed[question] = true
	return true
}

func (a *agentTerminals) answer(ctx context.Context, c acp.Command, q localapi.Approval) error {
	allowed, err := c.Ask(ctx, strings.Join(append(display.Settings(q), q.Reason), "\n"))
	if err != nil {
		return err
	}
	_, _ = a.person.Approve(ctx, q.ID, allowed, 0) // fails if it was answered elsewhere
	return nil
}
