package uplink

import (
	"context"
	"fmt"
	"slices"
	"time"

	"tether/agent/loans"
	"tether/agent/term"
	"tether/ahp"
)

// If the person allows it, a host may keep the text of lent terminals for its own
// interfaces while this machine is away. When a terminal is withdrawn meanwhile, the host
// drops its text when the machine is back, or when the allowed time is over.

// noticeTime bounds how long a host takes to notice that this machine is away: it sends a
// ping first.
const noticeTime = 2 * time.Minute

// parkFor returns how long the host may keep terminals; 0: not at all.
func (s *session) parkFor() time.Duration {
	if !s.marker.Resume || s.marker.ParkMs == 0 {
		return 0
	}
	return s.link.opts.Park
}

// keeps returns how long the host keeps terminals: the smaller of both sides' limits.
func (s *session) keeps() time.Duration {
	return min(s.parkFor(), time.Duration(s.marker.ParkMs)*time.Millisecond)
}

// park returns the host's permission to keep a terminal with that loan.
func (s *session) park(loan *loans.Loan) ahp.Park {
	left := time.Duration(-1)
	if !loan.Until.IsZero() {
		left = max(0, time.Until(loan.Until))
	}
	return ahp.NewPark(s.parkFor(), left)
}

// tellPark sends the host its present permissions.
func (s *session) tellPark(ctx context.Context, le *lending, loan *loans.Loan) error {
	if s.parkFor() == 0 {
		return nil
	}
	err := s.conn.Peer().CallBulk(ctx, ahp.MethodPark, ahp.ParkParams{Channel: le.uri, Park: s.park(loan)}, nil)
	if err != nil {
		return fmt.Errorf("say how long the terminal may be kept: %w", err)
	}
	return nil
}

// reclaim makes the host drop parked terminals that have ended or were withdrawn while
// this machine was away. It is called when every lent terminal has a lending.
func (s *session) reclaim(ctx context.Context) {
	if !s.marker.Resume || s.marker.ParkMs == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var kept ahp.ParkedResult
	if err := s.conn.Peer().Call(ctx, ahp.MethodParked, struct{}{}, &kept); err != nil {
		s.log.Warn().Err(shownError{err}).Msg("what the host keeps is not known")
		return
	}
	if err := kept.Validate(); err != nil {
		s.log.Warn().Err(shownError{err}).Msg("what the host says that it keeps")
		return
	}
	if s.link.noteKept(kept.Terminals) {
		s.rouse()
	}
}

// noteKept records which of the host's parked terminals must be disposed of, and reports
// whether there are any.
func (l *Link) noteKept(kept []ahp.Parked) (some bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ours := map[string]bool{}
	for _, le := range l.lendings {
		ours[le.uri], ours[le.former] = true, true
	}
	for _, t := range kept {
		if t.Own && !ours[t.Channel] && !slices.Contains(l.retired, t.Channel) {
			l.retired = append(l.retired, t.Channel)
			some = true
		}
	}
	return some
}

// keptLocked records until when the host may keep the terminals of this session, which
// has ended.
func (s *session) keptLocked(now time.Time) {
	l, during := s.link, s.keeps()
	if during <= 0 {
		return
	}
	for id, le := range l.lendings {
		if !le.created {
			continue
		}
		until := now.Add(during + noticeTime)
		if loan, ok := le.h.LoanHere(); ok && !loan.Until.IsZero() && loan.Until.Before(until) {
			until = loan.Until
		}
		l.kept[id] = until
	}
}

// keptBefore returns until when a host may keep the terminals that an earlier daemon lent
// there.
func keptBefore(o *Options) map[term.ID]time.Time {
	kept := map[term.ID]time.Time{}
	if o.Park <= 0 {
		return kept
	}
	for _, h := range o.Terminals.List() {
		if h.LinkState() != "" {
			kept[h.ID()] = time.Now().Add(o.Park + noticeTime)
		}
	}
	return kept
}

// keptNowLocked returns the host's present permissions, which the caller may change.
func (l *Link) keptNowLocked() map[term.ID]time.Time {
	now, kept := time.Now(), map[term.ID]time.Time{}
	for id, until := range l.kept {
		if until.After(now) {
			kept[id] = until
		}
	}
	return kept
}
