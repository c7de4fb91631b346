package term

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Share lets everyone with its link watch the terminal at the host of its loan. The link's secret is not kept.
type Share struct {
	ID         string
	SecretHash string // SHA-256 in hexadecimal digits
	Until      time.Time
	Once       bool // the host lets only the first browser in
	// Ended says that it is over and that the host may not know yet, see Handle.ForgetShare.
	Ended bool
}

// MaxShares bounds the shares of a loan, including ended ones that the host does not know of yet.
const MaxShares = 16

// Errors of shares.
var (
	ErrTooManyShares = errors.New("too many links")
	ErrNoShare       = errors.New("there is no such link")
)

// over reports whether its time is up, by either clock as for a Loan.
func (s *Share) over() bool {
	l := Loan{Until: s.Until}
	return l.over()
}

// lasting reports whether some share of the loan is not over.
func (l *Loan) lasting() bool {
	return slices.ContainsFunc(l.Shares, func(s Share) bool { return !s.Ended })
}

// addShareLocked adds a share to the loan.
func (t *Terminal) addShareLocked(l *Loan, s Share) error {
	if len(l.Shares) >= MaxShares {
		return fmt.Errorf("%w: a terminal may have %d for one host", ErrTooManyShares, MaxShares)
	}
	l.Shares = append(slices.Clone(l.Shares), s)
	t.lending.version++
	l.Version = t.lending.version
	return nil
}

// endSharesLocked ends the shares of the loan that fit, and says how many did. done says that the loan was for their guests alone and
// has none left.
func (t *Terminal) endSharesLocked(l *Loan, fits func(*Share) bool) (ended int, done bool) {
	shares := slices.Clone(l.Shares)
	for i := range shares {
		if s := &shares[i]; !s.Ended && fits(s) {
			s.Ended = true
			ended++
		}
	}
	if ended == 0 {
		return 0, false
	}
	l.Shares = shares
	t.lending.version++
	l.Version = t.lending.version
	return ended, l.Audience.GuestsOnly && !l.lasting()
}

// Unshare ends a share, and the loan if that was for its guests alone and has no other. Errors: ErrNotLent, ErrNoShare.
func (h Handle) Unshare(host, id string) error {
	if err := h.allow(OpLend); err != nil {
		return err
	}
	t := h.t
	t.mu.Lock()
	loan := t.lending.loan(host)
	if loan == nil {
		t.mu.Unlock()
		return ErrNotLent
	}
	ended, done := t.endSharesLocked(loan, func(s *Share) bool { return s.ID == id })
	if done {
		t.withdrawLocked(host)
	}
	t.watchLoansLocked()
	t.mu.Unlock()
	if ended == 0 {
		return ErrNoShare
	}
	t.changed()
	return h.did(Act{Kind: ActUnlend, Host: host, Detail: "the link " + id}, nil)
}

// ForgetShare forgets a share that has ended: the actor, a host's door, has told its host.
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

// expireShares ends the shares whose time is up.
func (t *Terminal) expireShares() {
	var done []string
	changed := false
	t.mu.Lock()
	for i := range t.lending.loans {
		l := &t.lending.loans[i]
		ended, last := t.endSharesLocked(l, (*Share).over)
		changed = changed || ended > 0
		if last {
			done = append(done, l.Host)
		}
	}
	for _, host := range done {
		t.withdrawLocked(host)
	}
	t.mu.Unlock()
	if changed {
		t.changed()
	}
	for _, host := range done {
		t.observe(Act{Kind: ActUnlend, Host: host, Detail: "the last link's time was up"})
	}
}
