package attach

import (
	"context"
	"errors"
	"slices"
	"time"

	"tether/agent/localapi"
	"tether/cmd/tether/internal/display"
)

// listenPause is the pause before listen asks again after the daemon has gone. The
// attachment itself reconnects sooner.
const listenPause = time.Second

// listen rings the person's terminal for each new question of an agent, until ctx ends.
// It asks the next daemon when one has gone. Questions that waited before the session
// began do not ring.
func (s *Session) listen(ctx context.Context) {
	var known []string
	var since *uint64 // the version of the daemon's list; nil: not known
	for began := false; ; {
		l, err := s.client.Approvals(ctx, since)
		if err != nil {
			if remote, ok := errors.AsType[*localapi.Error](err); ok && remote.Code != localapi.CodeClosing {
				return // an agent's client may not see questions
			}
			since = nil
			select {
			case <-time.After(listenPause):
				continue
			case <-ctx.Done():
				return
			}
		}
		now := waitingIn(l)
		for _, q := range l.Approvals {
			if began && slices.Contains(now, q.ID) && !slices.Contains(known, q.ID) {
				s.ring(display.ApprovalBell(q))
				break
			}
		}
		began, known, since = true, now, &l.Version
	}
}

// waitingIn returns the ids of the waiting questions.
func waitingIn(l localapi.ApprovalList) []string {
	var ids []string
	for _, a := range l.Approvals {
		if a.State == localapi.ApprovalWaiting {
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// ring writes the bell to the person's terminal, at once or after the control sequence
// that is being printed.
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
	_, _ = s.opts.Out.WriteString(s.bell) // if the terminal is gone, nothing helps
	s.bell = ""
}
