package uplink

import (
	"slices"
	"strings"
	"time"

	"tether/agent/term"
)

// State of a link; see the package comment for the transitions.
type State string

// The states.
const (
	StateConnecting  State = "connecting"
	StateOnline      State = "online"
	StateWaiting     State = "waiting"     // for the next attempt
	StateRefused     State = "refused"     // the credential was not accepted
	StateUnsupported State = "unsupported" // the host cannot show terminals of ours
)

// patient reports whether trying again soon is pointless.
func (s State) patient() bool { return s == StateRefused || s == StateUnsupported }

// Status is a link as it is now.
type Status struct {
	Name      string
	URL       string
	State     State
	Since     time.Time
	NextRetry time.Time // zero unless waiting
	Err       error     // why it is not online; fit to be shown on a terminal
	Version   string    // of the protocol, while online
	Server    string    // what the host calls itself
	Resume    bool      // the host acknowledges offsets
	Refused   int64     // actions from upstream that were not obeyed
	Terminals []TerminalStatus
}

// TerminalStatus is one lent terminal.
type TerminalStatus struct {
	ID      term.ID
	URI     string
	Unacked int64  // text bytes sent and not yet known to have arrived
	Lost    int64  // text bytes that the log dropped before they were sent
	Over    bool   // the host knows of its exit
	Problem string // why it is not shown at the host, "" if it is
}

// Status returns a snapshot.
func (l *Link) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.status
	for id, le := range l.lendings {
		if le.over {
			continue // nothing of it is on its way any more
		}
		s.Terminals = append(s.Terminals, TerminalStatus{
			ID: id, URI: le.uri, Unacked: le.sent - le.acked, Lost: le.lost, Over: le.over, Problem: le.problem,
		})
	}
	slices.SortFunc(s.Terminals, func(a, b TerminalStatus) int { return strings.Compare(string(a.ID), string(b.ID)) })
	return s
}

func (l *Link) setState(s State, err error, retry time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.status.State != s {
		l.status.Since = time.Now()
	}
	if err != nil {
		err = shownError{err}
	}
	l.status.State, l.status.Err, l.status.NextRetry = s, err, retry
}
