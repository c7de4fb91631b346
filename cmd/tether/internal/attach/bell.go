package attach

import (
	"context"
	"slices"

	"tether/agent/localapi"
	"tether/cmd/tether/internal/display"
)

// listen rings the person's terminal for each new question of an agent, until ctx ends. Questions that waited before the session began do
// not ring.
func (s *Session) listen(ctx context.Context) {
	l, err := s.client.Approvals(ctx, nil)
	for known := waitingIn(l); err == nil; {
		since := l.Version
		if l, err = s.client.Approvals(ctx, &since); err != nil {
			return // an agent's client is told nothing of questions; a daemon that ends tells elsewhere
		}
		now := waitingIn(l)
		for _, q := range l.Approvals {
			if slices.Contains(now, q.ID) && !slices.Contains(known, q.ID) {
				s.ring(display.ApprovalBell(q))
				break
			}
		}
		known = now
	}
}

// waitingIn are the questions that wait.
func waitingIn(l localapi.ApprovalList) []string {
	var ids []string
	for _, a := range l.Approvals {
		if a.State == localapi.ApprovalWaiting {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// ring writes the bell now, or after the control sequence that is being printed.
func (s *Session) ring(bell string) {
	s.printing.Lock()
	defer s.printing.Unlock()
	s.bell = bell
	s.ringLocked()
}

func (s *Session) ringLocked() {
	if s.bell == "" || s.modes.InSequence() {
		return
	}
	_, _ = s.opts.Out.WriteString(s.bell) // nothing helps when it is gone
	s.bell = ""
}
