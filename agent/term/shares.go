package term

import (
	"errors"
	"slices"
	"time"
)

// Share lets everyone who has its link watch the terminal at the host of its loan, or,
// with a Port, see that lent port and nothing else. The link's secret is not stored.
type Share struct {
	ID         string
	Port       int    // 0: the terminal
	SecretHash string // SHA-256 in hexadecimal digits
	Until      time.Time
	Once       bool // the host lets only the first browser in
	// Ended says that the share has ended and that the host may not know that yet, see
	// Handle.ForgetShare.
	Ended bool
}

// MaxShares bounds the shares of a loan, including ended ones that the host does not know
// of yet.
const MaxShares = 16

// Errors of shares.
var (
	ErrTooManyShares = errors.New("too many links")
	ErrNoShare       = errors.New("there is no such link")
)

// over reports whether the share has expired, by either clock as for a Loan.
func (s *Share) over() bool {
	l := Loan{Until: s.Until}
	return l.over()
}

// lastingFor reports whether the loan has a share for a port that is not over.
func (l *Loan) lastingFor(port int) bool {
	return slices.ContainsFunc(l.Shares, func(s Share) bool { return !s.Ended && s.Port == port })
}

// lasting reports whether the loan has a share that is not over.
func (l *Loan) lasting() bool {
	return slices.ContainsFunc(l.Shares, func(s Share) bool { return !s.Ended })
}

// addShareLocked adds a share to the loan.
func (t *Terminal) addShareLocked(l *Loan, s Share) {
	l.Shares = append(slices.Clone(l.Shares), s)
	t.lending.version++
	l.Version = t.lending.version
}

// endSharesLocked ends the shares of the loan that fits selects, and returns their ids.
// done reports that the loan was only for guests and has no share left.
func (t *Terminal) endSharesLocked(l *Loan, fits func(*Share) bool) (ended []string, done bool) {
	shares := slices.Clone(l.Shares)
	for i := range shares {
		if s := &shares[i]; !s.Ended && fits(s) {
			s.Ended = true
			ended = append(ended, s.ID)
		}
	}
	if len(ended) == 0 {
		return nil, false
	}
	l.Shares = shares
	t.setPortsLocked(l, slices.DeleteFunc(slices.Clone(l.Ports), func(p LentPort) bool { return p.Guests && !l.lastingFor(p.Port) }))
	return ended, l.Audience.GuestsOnly && !l.lasting()
}

// Unshare ends a share. It also ends the loan if that was only for guests and has no
// other share. Errors: ErrNotLent, ErrNoShare.
func (h Handle) Unshare(host, id string) error {
	return h.changeLoan(host, func(t *Terminal, loan *Loan) (*Act, error) {
		ended, done := t.endSharesLocked(loan, func(s *Share) bool { return s.ID == id })
		if done {
			t.withdrawLocked(host)
		}
		t.watchLoansLocked()
		if len(ended) == 0 {
			return nil, ErrNoShare
		}
		return &Act{Kind: ActUnlend, Detail: "the link " + id}, nil
	})
}

// ForgetShare removes a share that has ended. The actor, a host's link, calls it after it
// has told its host.
func (h Handle) ForgetShare(id string) {
	t := h.t
	t.mu.Lock()
	forgot := false
	if l := t.lending.loan(h.actor.Name); l != nil {
		before := len(l.Shares)
		l.Shares = slices.DeleteFunc(slices.Clone(l.Shares), func(s Share) bool { return s.Ended && s.ID == id })
		forgot = len(l.Shares) < before
	}
	t.mu.Unlock()
	if forgot {
		t.changed()
	}
}

// expireShares ends expired shares.
func (t *Terminal) expireShares() {
	var done []string
	var acts []Act
	t.mu.Lock()
	for i := range t.lending.loans {
		l := &t.lending.loans[i]
		ended, last := t.endSharesLocked(l, (*Share).over)
		for _, id := range ended {
			acts = append(acts, Act{Kind: ActUnlend, Host: l.Host, Detail: "the link " + id + ", whose time was up"})
		}
		if last {
			done = append(done, l.Host)
		}
	}
	for _, host := range done {
		t.withdrawLocked(host)
		acts = append(acts, Act{Kind: ActUnlend, Host: host, Detail: "the last link's time was up"})
	}
	t.mu.Unlock()
	if len(acts) > 0 {
		t.changed()
	}
	for _, a := range acts {
		t.observe(a)
	}
}
