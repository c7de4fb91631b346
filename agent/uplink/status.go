package uplink

import (
	"slices"
	"strings"
	"time"

	"tether/vocab"
)

// State of a link; see the package comment for the transitions.
type State string

// The states.
const (
	StateConnecting  State = "connecting"
	StateOnline      State = "online"
	StateWaiting     State = "waiting"     // until the next attempt
	StateRefused     State = "refused"     // the credential was not accepted
	StateUnsupported State = "unsupported" // the host cannot show our terminals
)

// patient reports whether trying again soon is pointless.
func (s State) patient() bool { return s == StateRefused || s == StateUnsupported }

// Status is a link's present state. Fields that only a connection provides are zero
// without one.
type Status struct {
	Name      string
	URL       string
	State     State
	Since     time.Time // when State began
	DownSince time.Time // when the connection was lost, or New was called; zero while online
	NextRetry time.Time // zero unless waiting
	Err       error     // why the link is not online; nil before an attempt has failed. Safe to show on a terminal
	Version   string    // of the protocol
	Server    string    // the host's name for itself
	Resume    bool      // the host acknowledges offsets
	// ClockSkew is how far the host's clock is ahead, to about a second; 0 while not
	// online and where the host does not say.
	ClockSkew time.Duration
	// LentMeans describes who sees a terminal that is lent there, Owner is the person to
	// whom this machine belongs according to the host, and Shares says whether the host
	// accepts links for guests.
	LentMeans string
	Owner     string
	Shares    bool
	// Park bounds how long the host may keep terminals while this machine is away: the
	// smaller of what both allow; 0: not beyond its grace time.
	Park      time.Duration
	Refused   int64 // actions of the host that were refused
	Gaps      int   // since New: how often output was dropped before it was sent
	GapBytes  int64 // since New: bytes of text that were dropped so
	Unacked   int64 // sum over Terminals
	Known     int   // terminals that the host may have, including exited ones and those that are being withdrawn
	Terminals []TerminalStatus
	// At is which of several URLs the connection is to; "" without a connection, and if
	// there is only one.
	At string
	// Withdrawn is how many terminals were withdrawn while there is no connection, so
	// that the host may still keep them, at most until KeptUntil. It is told when it is
	// reached again.
	Withdrawn int
	KeptUntil time.Time
}

// TerminalStatus is one lent terminal.
type TerminalStatus struct {
	vocab.Lent
	Over bool // the host knows of its exit
}

// Status returns a snapshot. It asks nobody.
func (l *Link) Status() Status {
	lent := l.opts.Terminals.List()
	l.mu.Lock()
	s := l.status
	s.Known = l.knownLocked()
	if last := l.opts.Endpoint.Last; last != nil && s.State == StateOnline {
		if at := last.Load(); at != nil {
			s.At = *at
		}
	}
	kept := l.keptNowLocked()
	for _, h := range lent {
		t := TerminalStatus{Lent: vocab.Lent{ID: string(h.ID())}} // not announced yet, as while the link is down
		if le := l.lendings[h.ID()]; le != nil {
			t.Over = le.finished
			t.URI, t.Unacked, t.Lost, t.There, t.Problem, t.Observers, t.Watchers = le.uri, -le.acked, le.lost, le.there, le.problem, le.observers, le.watchers
		}
		t.KeptUntil = kept[h.ID()]
		delete(kept, h.ID())
		s.Terminals = append(s.Terminals, t)
	}
	l.mu.Unlock()
	for _, until := range kept {
		s.Withdrawn++
		if until.After(s.KeptUntil) {
			s.KeptUntil = until
		}
	}
	for i, h := range lent { // a terminal's lock may be held for a while
		t := &s.Terminals[i]
		t.Unacked = max(t.Unacked+h.TextEnd(), 0)
		loan, _ := h.LoanHere()
		t.Ports = loan.Ports
	}
	s.Terminals = slices.DeleteFunc(s.Terminals, func(t TerminalStatus) bool { return t.Over }) // nothing of it is on its way any more
	for _, t := range s.Terminals {
		s.Unacked += t.Unacked
	}
	slices.SortFunc(s.Terminals, func(a, b TerminalStatus) int { return strings.Compare(a.ID, b.ID) })
	return s
}

func (l *Link) setState(s State, err error, retry time.Time) {
	l.mu.Lock()
	now, st := time.Now(), &l.status
	came := s == StateOnline && st.State != s
	if st.State != s {
		st.Since = now
	}
	switch {
	case s == StateOnline:
		st.DownSince = time.Time{}
	case st.DownSince.IsZero():
		st.DownSince = now
	}
	if s != StateOnline {
		st.Version, st.Server, st.Resume, st.ClockSkew = "", "", false, 0
		st.LentMeans, st.Owner, st.Shares, st.Park = "", "", false, 0
	}
	switch {
	case err != nil:
		st.Err = shownError{err}
	case s != StateConnecting: // while connecting, the last failure stays reported
		st.Err = nil
	}
	st.State, st.NextRetry = s, retry
	l.roseLocked()
	l.mu.Unlock()
	if came && l.opts.Up != nil {
		l.opts.Up()
	}
}
